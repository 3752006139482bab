"""Averages metrics over the labels that occur in a split; torchmetrics counts absent ones as 0."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassAveragePrecision,
)
from torchmetrics.functional.classification import multiclass_auroc, multiclass_average_precision
from torchmetrics.utilities import dim_zero_cat


class BalancedAccuracy(MulticlassAccuracy):
    """Mean recall of the labels that occur, as scikit-learn's `balanced_accuracy_score`.

    Args:
        num_classes: number of labels.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes=num_classes, average="none")

    def compute(self) -> Tensor:
        recalls = super().compute()[self.tp + self.fn > 0]
        mean: Tensor = (recalls / len(recalls)).sum()  # divided first, as torchmetrics does
        return mean


class AUROC(MulticlassAUROC):
    """Mean area under the ROC curve, one label against the others, of the labels that occur.

    It is 0 where a single label occurs.
    """

    def compute(self) -> Tensor:
        return _over_occurring(self, multiclass_auroc)


class AveragePrecision(MulticlassAveragePrecision):
    """Mean area under the precision-recall curve of the labels that occur."""

    def compute(self) -> Tensor:
        return _over_occurring(self, multiclass_average_precision)


def _over_occurring(
    metric: MulticlassAUROC | MulticlassAveragePrecision, area: Callable[..., Tensor]
) -> Tensor:
    """Return the mean `area` as if there were no other labels than those that occur."""
    occurring, labels = dim_zero_cat(metric.target).unique(return_inverse=True)
    probabilities = dim_zero_cat(metric.preds)[:, occurring]
    return area(probabilities, labels, len(occurring), average="macro", validate_args=False)
