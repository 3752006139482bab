"""Multi-label classification: each text has several labels, one, or none (`task.kind`)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torchmetrics import Metric, classification
from torchmetrics.classification import (
    MultilabelAveragePrecision,
    MultilabelExactMatch,
    MultilabelF1Score,
    MultilabelPrecision,
    MultilabelRecall,
)

from tartan.core.seeding import generator_for
from tartan.data.labelled import Columns, one_label, place_of
from tartan.data.splits import iterative_split
from tartan.data.table import Row
from tartan.data.task_kind import (
    Labels,
    Names,
    Nodes,
    Scores,
    TaskKind,
    Thresholds,
    check_no_label_options,
    without_classes,
)
from tartan.data.thresholds import best_thresholds, centred
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.objectives.classification import Classification
from tartan.settings import TARGET

_YES_OR_NO = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_AVERAGED = {"f1": MultilabelF1Score, "precision": MultilabelPrecision, "recall": MultilabelRecall}


@dataclass(frozen=True)
class MultiLabelClassification(Classification):
    """Predicts for each label whether a text has it; a unit is a text.

    Its loss is the mean over labels of their binary cross-entropies. Targets are 0 and 1,
    `(examples, labels)`.
    """

    kind, problem_type = "multi_label", "multi_label_classification"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_no_label_options(self)

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return each text's mean binary cross-entropy, `(examples,)`."""
        logits = head(features)
        targets = targets.to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(dim=1)


class MultiLabelMetrics(EndTaskMetrics):
    """Metrics of all labels of a text, of which it has those above their thresholds, `(labels,)`.

    An evaluation on dev chooses the thresholds, which are stored with the weights.
    """

    one_code = False
    thresholds: Tensor

    def __init__(self, metrics: Mapping[str, Metric], monitor: str, classes: int) -> None:
        super().__init__(metrics, monitor, classes)
        self.thresholds = torch.full((classes,), 0.5, dtype=torch.float64)

    def scores_of(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def shown(self, scores: Tensor) -> Tensor:
        moved = centred(scores.cpu().numpy(), self.thresholds.cpu().numpy())
        return torch.from_numpy(moved).to(scores.device)

    def choose_thresholds(self) -> None:
        scores, codes = (tensor.cpu().numpy() for tensor in self.every(self.whole))
        self.thresholds.copy_(torch.from_numpy(best_thresholds(scores, codes)))


class MultiLabel(TaskKind):
    """Several labels for each text, or none (see `TaskKind`).

    A label is a sorted tuple of names, and its code says for each label whether it is there: 0 or
    1. Tables have lists of names; names with `Columns.separator` between them; or a column of 0 and
    1 for each label.
    """

    name = "multi_label"
    problem_type = MultiLabelClassification.problem_type
    one_label = False
    lists_labels = True
    least_labels = 1
    named: ClassVar = {
        "accuracy": MultilabelExactMatch,
        **{
            f"{average}_{name}": partial(kind, average=average)
            for name, kind in _AVERAGED.items()
            for average in ("macro", "micro", "weighted")
        },
        "average_precision": MultilabelAveragePrecision,
    }
    evaluator = MultiLabelMetrics
    predicted_column = "predicted_labels"

    def label(self, row: Row, columns: Columns, *, blank_is_none: bool) -> tuple[str, ...] | None:
        if isinstance(columns.label, tuple):
            return _of_columns(row, columns.label)
        value = row.values.get(columns.label)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, str):
            if not value.strip() and blank_is_none:
                return None
            if columns.separator is None:
                raise UserError(
                    f"{place_of(row, columns.label)} is text; say what is between labels: "
                    "\"task.separator=';'\""
                )
            value = [part for part in value.split(columns.separator) if part.strip()]
        if not isinstance(value, list | tuple):
            raise UserError(f"{place_of(row, columns.label)} must be a list of labels")
        items = [Row(row.number, {columns.label: item}, row.place) for item in value]
        names = {one_label(item, columns.label) for item in items}
        if None in names:
            raise UserError(f"{place_of(row, columns.label)} has an empty label")
        return tuple(sorted(filter(None, names)))

    def label_of(self, value: Any) -> tuple[str, ...]:
        return tuple(sorted({super(MultiLabel, self).label_of(name) for name in value}))

    def names(self, label: Any) -> Sequence[str]:
        return tuple(label)

    def shown(self, label: Any, separator: str | None = None) -> str:
        return (separator or ", ").join(label)

    def code(self, label: Any, index: Mapping[str, int]) -> list[int]:
        return [int(name in label) for name in index]

    def written(self, code: Any, labels: Sequence[str]) -> list[str]:
        return [name for name, there in zip(labels, code, strict=True) if there]

    def counts(self, codes: Sequence[Any], labels: Sequence[str]) -> tuple[int, ...]:
        return tuple(np.reshape(codes, (-1, len(labels))).sum(axis=0, dtype=int).tolist())

    def split(self, labels: Labels, shares: Mapping[str, float], seed: int, name: str) -> list[str]:
        counts = {s: max(1, round(x * len(labels))) for s, x in shares.items() if x}
        rest = len(labels) - sum(counts.values())
        if rest < 1:
            raise UserError(f"{name}: too few examples for train and task.{', task.'.join(counts)}")
        return self.clean_split(range(len(labels)), labels, {"train": rest, **counts}, seed, "")

    def choose(self, labels: Sequence[Any], count: int, seed: int, source: str) -> list[bool]:
        sizes = {"kept": count, "others": len(labels) - count}
        splits = self.clean_split(range(len(labels)), labels, sizes, seed, "labelled")
        kept = [split == "kept" for split in splits]
        if set(chain(*compress(labels, kept))) != set(chain(*labels)):
            raise UserError(
                f"task.labelled={count}: each label of {source} has to keep one example"
            )
        return kept

    def clean_split(
        self, groups: Sequence[int], labels: Labels, sizes: Mapping[str, int], seed: int, name: str
    ) -> list[str]:
        generator = generator_for(seed, "multi-label split", *sizes)
        parts = iterative_split(labels, groups, list(sizes.values()), generator)
        return [list(sizes)[part] for part in parts]

    def folds(self, labels: Sequence[Any], groups: Sequence[int], folds: int) -> NDArray[np.int64]:
        sizes = [len(part) for part in np.array_split(np.arange(len(labels)), folds)]
        return iterative_split(labels, groups, sizes, generator_for(0, "multi-label folds"))

    def objective(self, classification: Any, codes: Sequence[Any]) -> Any:
        return self.retyped(classification, MultiLabelClassification)

    def loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, codes.to(logits.dtype))

    def placed(self, codes: Tensor, places: Tensor, labels: int) -> Tensor:
        return codes.new_zeros(len(codes), labels).index_copy(1, places, codes)

    def metrics(self, nodes: Nodes) -> Nodes:
        folder = classification.__name__
        f1 = {TARGET: f"{folder}.{MultilabelF1Score.__name__}"}
        ours = {f"{average}_f1": {**f1, "average": average} for average in ("macro", "micro")}
        precision = {TARGET: f"{folder}.{MultilabelAveragePrecision.__name__}"}
        return {**ours, "average_precision": precision, **without_classes(nodes)}

    def sizes(self, labels: int) -> dict[str, int]:
        return {"num_labels": labels}

    def scores(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def predicted(self, scores: Scores, labels: Names, thresholds: Thresholds = None) -> list[Any]:
        above = scores.astype(np.float64) > (0.5 if thresholds is None else np.asarray(thresholds))
        return [self.written(code, labels) for code in above]


def _of_columns(row: Row, columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns with a 1; None where all are blank."""
    words = {c: str(v if (v := row.values.get(c)) is not None else "").strip() for c in columns}
    if not any(words.values()):
        return None
    for column, word in words.items():
        if word.lower() not in _YES_OR_NO:
            raise UserError(f"{place_of(row, column)} must be 0 or 1, and is {word!r}")
    return tuple(sorted(name for name, word in words.items() if _YES_OR_NO[word.lower()]))
