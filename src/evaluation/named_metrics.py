"""Provides metrics that `task.metric` may name without an entry under `metrics` in the config."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from torchmetrics import Metric
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassAveragePrecision,
    MulticlassCohenKappa,
    MulticlassF1Score,
    MulticlassMatthewsCorrCoef,
    MulticlassPrecision,
    MulticlassRecall,
    MulticlassSpecificity,
)

from src.configuration.did_you_mean import did_you_mean
from src.errors import UserError

NAMED: dict[str, Callable[..., Metric]] = {
    "accuracy": partial(MulticlassAccuracy, average="micro"),
    "balanced_accuracy": partial(MulticlassAccuracy, average="macro"),  # = macro recall
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
    "auroc": partial(MulticlassAUROC, average="macro"),
    "average_precision": partial(MulticlassAveragePrecision, average="macro"),
}
"""Metrics of torchmetrics by name; all take `num_classes`, and higher is better."""


def check_metric(name: str, configured: Collection[str], option: str = "task.metric") -> None:
    """Check that there is a metric of this name.

    Args:
        name: the name.
        configured: names under `metrics` in the config.
        option: what gives the name, for the message.

    Raises:
        UserError: there is none; the message has the nearest name, or lists all.
    """
    known = {*configured, *NAMED}
    if name not in known:
        raise UserError(f"{option}={name} is not one of the metrics{did_you_mean(name, known)}")


def named_metric(name: str, classes: int) -> Metric:
    """Return the metric for that number of labels."""
    return NAMED[name](num_classes=classes)
