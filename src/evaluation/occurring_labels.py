"""Averages metrics over the labels that occur in a split; torchmetrics counts absent ones as 0."""

from __future__ import annotations

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

    Args:
        num_classes: number of labels.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes=num_classes, average="macro")

    def compute(self) -> Tensor:
        area: Tensor = multiclass_auroc(*_of_occurring(self), average="macro", validate_args=False)
        return area


class AveragePrecision(MulticlassAveragePrecision):
    """Mean area under the precision-recall curve of the labels that occur.

    Args:
        num_classes: number of labels.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes=num_classes, average="macro")

    def compute(self) -> Tensor:
        area: Tensor = multiclass_average_precision(
            *_of_occurring(self), average="macro", validate_args=False
        )
        return area


def _of_occurring(
    metric: MulticlassAUROC | MulticlassAveragePrecision,
) -> tuple[Tensor, Tensor, int]:
    """Return the probabilities of the labels that occur, the labels as indices of these, and how
    many there are: `(n, occurring)`, `(n,)`.
    """
    occurring, labels = dim_zero_cat(metric.target).unique(return_inverse=True)
    return dim_zero_cat(metric.preds)[:, occurring], labels, len(occurring)
