"""Metrics that `task.metric` may name without an entry under `metrics` in the config."""

from __future__ import annotations

import difflib
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
"""Higher is better for each; all are of torchmetrics and take `num_classes`."""


def check_metric(name: str, configured: Collection[str]) -> None:
    """Whether there is a metric of this name.

    Args:
        configured: names under `metrics` in the config.

    Raises:
        UserError: there is none; lists those that there are.
    """
    known = sorted({*configured, *NAMED})
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(
            f"task.metric={name} is not one of the metrics; {hint}there are {', '.join(known)}"
        )


def named_metric(name: str, classes: int) -> Metric:
    """The metric for so many labels."""
    return NAMED[name](num_classes=classes)
