"""Regression: each text has a number (`task.kind`)."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics import regression
from torchmetrics.regression import PearsonCorrCoef, SpearmanCorrCoef

from tartan.data.labelled import Columns, place_of
from tartan.data.table import Row
from tartan.data.task_kind import (
    Names,
    Nodes,
    Scores,
    TaskKind,
    Thresholds,
    check_no_label_options,
    without_classes,
)
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.objectives.classification import Classification
from tartan.settings import TARGET, Positive

VALUE = "value"
"""The only label's name, in the place of label names."""


class RegressionHead(nn.Module):
    """Gives the output of a classifier's head, `(n, 1)`, the mean and deviation of the numbers."""

    def __init__(self, head: nn.Module, mean: float, deviation: float) -> None:
        super().__init__()
        self.head, self.mean, self.deviation = head, mean, deviation

    def forward(self, features: Tensor) -> Tensor:
        output: Tensor = self.head(features)
        output = output.to(torch.promote_types(output.dtype, torch.float32))
        return output * self.deviation + self.mean

    def exported(self) -> nn.Module:
        head = copy.deepcopy(self.head)
        *_, out = (module for module in head.modules() if isinstance(module, nn.Linear))
        with torch.no_grad():
            out.weight.mul_(self.deviation)
            out.bias.mul_(self.deviation).add_(self.mean)
        return head


@dataclass(frozen=True)
class Regression(Classification):
    """Predicts a number; a unit is a text.

    Its loss is the squared error in units of the training numbers' standard deviation. Targets are
    `(examples, 1)`.

    Attributes:
        mean: of the training numbers.
        deviation: their standard deviation.
    """

    mean: float = 0.0
    deviation: Positive = 1.0
    kind, problem_type = "regression", "regression"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_no_label_options(self)

    def new_head(self, encoder: TextEncoder) -> nn.Module:
        return RegressionHead(super().new_head(encoder), self.mean, self.deviation)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return each text's squared error, `(examples,)`."""
        values: Tensor = head(features)
        errors = (values - targets.to(values.dtype)) / self.deviation
        return errors.square().mean(dim=1)


class RegressionMetrics(EndTaskMetrics):
    """Metrics of numbers."""

    one_code, codes_dtype = False, torch.float32

    def scores_of(self, logits: Tensor) -> Tensor:
        return logits


class RegressionKind(TaskKind):
    """A number for each text (see `TaskKind`); a code is a list of it alone."""

    name = "regression"
    problem_type = Regression.problem_type
    one_label = False
    least_labels = 1
    named: ClassVar = {"spearman": SpearmanCorrCoef, "pearson": PearsonCorrCoef}
    evaluator = RegressionMetrics
    predicted_column = None
    score_column = f"predicted_{VALUE}"

    def label(self, row: Row, columns: Columns, *, blank_is_none: bool) -> float | None:
        value = row.values.get(str(columns.label))
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, str) and not value.strip():
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise UserError(f"{place_of(row, columns.label)} must be a number, and is {value!r}")
        return number

    def label_of(self, value: Any) -> float:
        return float(value)

    def names(self, label: Any) -> Sequence[str]:
        return (VALUE,)

    def code(self, label: Any, index: Mapping[str, int]) -> list[float]:
        return [label]

    def written(self, code: Any, labels: Sequence[str]) -> float:
        return float(code[0])

    def counts(self, codes: Sequence[Any], labels: Sequence[str]) -> tuple[int, ...]:
        return (len(codes),)

    def strata(self, labels: Sequence[Any]) -> Sequence[str]:
        """Return tenths of the numbers by size, or larger parts of few."""
        parts = max(1, min(10, len(labels) // 10))
        ranks = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
        return [str(rank * parts // len(labels)) for rank in ranks.tolist()]

    def objective(self, classification: Any, codes: Sequence[Any]) -> Any:
        deviation = float(np.std(codes))
        if not deviation:
            raise UserError("task.kind=regression: all training numbers are equal")
        scale = {"mean": float(np.mean(codes)), "deviation": deviation}
        return self.retyped(classification, Regression, **scale)

    def loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        return F.mse_loss(logits, codes.to(logits.dtype))

    def placed(self, codes: Tensor, places: Tensor, labels: int) -> Tensor:
        return codes

    def metrics(self, nodes: Nodes) -> Nodes:
        folder = regression.__name__
        ours = {name: {TARGET: f"{folder}.{kind.__name__}"} for name, kind in self.named.items()}
        return ours | without_classes(nodes)

    def sizes(self, labels: int) -> dict[str, int]:
        return {}

    def scores(self, logits: Tensor) -> Tensor:
        return logits

    def predicted(self, scores: Scores, labels: Names, thresholds: Thresholds = None) -> list[Any]:
        return [float(str(score)) for score in scores[:, 0]]
