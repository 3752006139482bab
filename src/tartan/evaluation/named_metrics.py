"""Provides metrics that `task.metric` may name without an entry under `metrics` in the config."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassCohenKappa,
    MulticlassF1Score,
    MulticlassMatthewsCorrCoef,
    MulticlassPrecision,
    MulticlassRecall,
    MulticlassSpecificity,
)
from torchmetrics.functional.classification import multiclass_auroc, multiclass_average_precision
from torchmetrics.utilities import dim_zero_cat

from tartan.errors import UserError


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


NAMED: dict[str, Callable[..., Metric]] = {
    "accuracy": partial(MulticlassAccuracy, average="micro"),
    "balanced_accuracy": BalancedAccuracy,
    **{
        f"{average}_{name}": partial(kind, average=average)
        for name, kind in (
            ("f1", MulticlassF1Score),
            ("precision", MulticlassPrecision),
            ("recall", MulticlassRecall),
        )
        for average in ("macro", "micro", "weighted")
    },
    "specificity": partial(MulticlassSpecificity, average="macro"),
    "mcc": MulticlassMatthewsCorrCoef,
    "cohen_kappa": MulticlassCohenKappa,
    "auroc": AUROC,
    "average_precision": AveragePrecision,
}
"""Metrics of torchmetrics by name; all take `num_classes`, and higher is better."""


def named_metric(name: str, classes: int) -> Metric:
    """Return the metric for that number of labels."""
    return NAMED[name](num_classes=classes)


def check_metric(name: str, configured: Collection[str], option: str = "task.metric") -> None:
    """Raise a UserError unless a metric has this name: of `configured` ones, or of `NAMED`."""
    known = sorted({*configured, *NAMED})
    if name not in known:
        raise UserError(f"{option}={name} is not one of the metrics: {', '.join(known)}")


def check_higher_is_better(name: str, metric: Metric) -> None:
    """Raise a UserError for a metric that cannot choose the checkpoint: the higher value wins."""
    if metric.higher_is_better is not True:
        raise UserError(
            f"task.metric={name} cannot choose the checkpoint: higher values of "
            f"{type(metric).__name__} are not known to be better (higher_is_better)"
        )
