"""Provides metrics that `task.metric` may name without an entry under `metrics` in the config."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from torchmetrics import Metric
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassCohenKappa,
    MulticlassF1Score,
    MulticlassMatthewsCorrCoef,
    MulticlassPrecision,
    MulticlassRecall,
    MulticlassSpecificity,
)

from tartan.configuration.did_you_mean import did_you_mean
from tartan.errors import UserError
from tartan.evaluation.occurring_labels import AUROC, AveragePrecision, BalancedAccuracy

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
LABELS_ALIKE = frozenset(
    {
        "balanced_accuracy",
        "macro_f1",
        "macro_precision",
        "macro_recall",
        "specificity",
        "auroc",
        "average_precision",
    }
)
"""Those that average over labels with equal weights, however rare a label is."""


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


def check_higher_is_better(name: str, metric: Metric) -> None:
    """Check that a metric of the config can choose the checkpoint: of two values, the higher.

    Args:
        name: its name under `metrics`.
        metric: the metric.

    Raises:
        UserError: its lower values are better, or it does not say which are.
    """
    if metric.higher_is_better is not True:
        kind = type(metric).__name__
        why = f"lower values of {kind} are better"
        if metric.higher_is_better is None:
            why = f"{kind} does not say whether higher values are better (higher_is_better)"
        raise UserError(
            f"task.metric={name} cannot choose the checkpoint: {why}; name a metric of which "
            f"higher values are better, and {name} is still reported"
        )


def named_metric(name: str, classes: int) -> Metric:
    """Return the metric for that number of labels."""
    return NAMED[name](num_classes=classes)
