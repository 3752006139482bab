"""Computes the end task's metrics on all examples of a split, and on its unseen ones."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassCalibrationError,
    MulticlassCohenKappa,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassHingeLoss,
    MulticlassMatthewsCorrCoef,
    MulticlassPrecision,
    MulticlassPrecisionRecallCurve,
    MulticlassRecall,
    MulticlassSpecificity,
)
from torchmetrics.functional.classification import multiclass_auroc, multiclass_average_precision
from torchmetrics.utilities import dim_zero_cat

from tartan.errors import UserError

_OF_PROBABILITIES = (
    MulticlassPrecisionRecallCurve,
    MulticlassCalibrationError,
    MulticlassHingeLoss,
)


class BalancedAccuracy(MulticlassAccuracy):
    """Mean recall of the labels that occur; torchmetrics counts absent ones as 0."""

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes=num_classes, average="none")

    def compute(self) -> Tensor:
        recalls = super().compute()[self.tp + self.fn > 0]
        mean: Tensor = (recalls / len(recalls)).sum()  # divided first, as torchmetrics does
        return mean


class AUROC(MulticlassAUROC):
    """Mean area under the ROC curve, one label against the others, of the labels that occur."""

    _area = staticmethod(multiclass_auroc)

    def compute(self) -> Tensor:
        occurring, labels = dim_zero_cat(self.target).unique(return_inverse=True)
        scores = dim_zero_cat(self.preds)[:, occurring]
        options = {"average": "macro", "validate_args": False}
        mean: Tensor = self._area(scores, labels, len(occurring), **options)
        return mean


class AveragePrecision(AUROC):
    """Mean area under the precision-recall curve of the labels that occur."""

    _area = staticmethod(multiclass_average_precision)


_AVERAGED = {"f1": MulticlassF1Score, "precision": MulticlassPrecision, "recall": MulticlassRecall}
NAMED: dict[str, Callable[..., Metric]] = {
    "accuracy": partial(MulticlassAccuracy, average="micro"),
    "balanced_accuracy": BalancedAccuracy,
    **{
        f"{average}_{name}": partial(kind, average=average)
        for name, kind in _AVERAGED.items()
        for average in ("macro", "micro", "weighted")
    },
    "specificity": partial(MulticlassSpecificity, average="macro"),
    "mcc": MulticlassMatthewsCorrCoef,
    "cohen_kappa": MulticlassCohenKappa,
    "auroc": AUROC,
    "average_precision": AveragePrecision,
}
"""Metrics that `task.metric` may name without an entry under `metrics` in the config.

All take `num_classes`, and higher is better.
"""


def check_metric(
    name: str,
    configured: Collection[str],
    option: str = "task.metric",
    named: Collection[str] = NAMED,
) -> None:
    """Raise a UserError unless a metric has this name: of `configured` ones, or of `named`."""
    known = sorted({*configured, *named})
    if name not in known:
        raise UserError(f"{option}={name} is not one of the metrics: {', '.join(known)}")


def check_higher_is_better(name: str, metric: Metric) -> None:
    """Raise a UserError for a metric that cannot choose the checkpoint: the higher value wins."""
    if metric.higher_is_better is not True:
        raise UserError(
            f"task.metric={name} cannot choose the checkpoint: higher values of "
            f"{type(metric).__name__} are not known to be better (higher_is_better)"
        )


@dataclass(frozen=True)
class SplitScores:
    """The metrics of a split, those of unseen examples named `..._unseen`, and its confusion."""

    metrics: dict[str, float]
    confusion: dict[str, list[list[int]]] = field(default_factory=dict)


class EndTaskMetrics(nn.Module):
    """Torchmetrics' classification metrics, computed twice: on all and on unseen examples.

    `saw_unseen` says whether this process has counted an unseen example; `confusion` are the last
    evaluation's matrices by part, `(classes, classes)`, labels in rows; `modes` the directions
    (`max` or `min`) of metrics that have one. Other kinds of end task have subclasses.
    """

    def __init__(self, metrics: Mapping[str, Metric], monitor: str, classes: int) -> None:
        super().__init__()
        self.monitor, self.names = monitor, list(metrics)
        self.whole, self.unseen = self.new_part(metrics, classes), self.new_part(metrics, classes)
        self.saw_unseen = False
        self.confusion: dict[str, Tensor] = {}
        better = {name: metric.higher_is_better for name, metric in metrics.items()}
        self.modes = {n: "max" if high else "min" for n, high in better.items() if high is not None}

    def new_part(self, metrics: Mapping[str, Metric], classes: int) -> Any:
        """Return the metrics of all examples, or of the unseen ones."""
        return _Part(metrics, classes)

    def choose_thresholds(self) -> None:
        """Choose by the examples counted so far what predictions depend on: here nothing."""

    def update(self, logits: Tensor, labels: Tensor, unseen: Tensor | None = None) -> None:
        """Count a batch: logits `(n, classes)`, labels' codes and whether absent from train."""
        self.whole.update(logits, labels)
        if unseen is not None and bool(unseen.any()):
            self.saw_unseen = True
            self.unseen.update(logits[unseen], labels[unseen])

    def compute(self, any_unseen: bool) -> dict[str, Tensor]:
        """Return all metrics by name, those of unseen examples if any process `saw_unseen` one."""
        values: dict[str, Tensor] = self.whole.compute()
        parts = {"whole": self.whole}
        if any_unseen:
            parts["unseen"] = self.unseen
            values |= {f"{name}_unseen": value for name, value in self.unseen.compute().items()}
        self.confusion = {
            name: part.counts.compute() for name, part in parts.items() if part.counts is not None
        }
        return values

    def reset(self) -> None:
        self.saw_unseen = False
        for module in self.modules():
            if isinstance(module, Metric):
                module.reset()


class _Part(nn.Module):
    """The metrics of predicted labels, those of probabilities, and the confusion matrix."""

    def __init__(self, metrics: Mapping[str, Metric], classes: int) -> None:
        super().__init__()
        self._names, self._classes = list(metrics), classes
        # a curve, or several guesses, needs more than the predicted label
        ranking = {
            name: metric
            for name, metric in metrics.items()
            if isinstance(metric, _OF_PROBABILITIES) or (getattr(metric, "top_k", 1) or 1) > 1
        }
        counting = {name: metric for name, metric in metrics.items() if name not in ranking}
        # groups are found by equal states after one batch, and such metrics may differ
        self.by_prediction = MetricCollection(counting, compute_groups=False).clone()
        self.by_probability = MetricCollection(ranking, compute_groups=False).clone()
        self.counts = MulticlassConfusionMatrix(classes, validate_args=False)

    def update(self, logits: Tensor, labels: Tensor) -> None:
        predictions = logits.argmax(dim=1)
        self.by_prediction.update(predictions, labels)
        if len(self.by_probability):
            self.by_probability.update(logits.softmax(dim=1), labels)
        self.counts.update(predictions, labels)

    def compute(self) -> dict[str, Tensor]:
        for metric in self.by_probability.values():
            # of several processes one may have no example, and torchmetrics, which joins the lists
            # of all, does not know what the rows of an empty one would be
            keeps = isinstance(metric, MulticlassPrecisionRecallCurve) and metric.thresholds is None
            if keeps and not metric.preds:
                metric.preds.append(torch.zeros(0, self._classes, device=metric.device))
                metric.target.append(torch.zeros(0, dtype=torch.int64, device=metric.device))
        values = {**self.by_prediction.compute(), **self.by_probability.compute()}
        return {name: values[name] for name in self._names}
