"""Computes bootstrap intervals of metrics from confusion matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Counts = NDArray[np.int64]
"""Numbers of examples, int64 `(..., classes, classes)`: labels in rows, predictions in columns."""
RESAMPLES = 10_000
_AGREEMENT = 1e-4


@dataclass(frozen=True)
class Interval:
    """The interval that contains 95% of a metric's values on resampled examples."""

    low: float
    high: float


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class against the others; None where the denominator is 0."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int


def bootstrap_interval(
    metric: str, value: float, confusion: Sequence[Sequence[int]], seed: int = 0
) -> Interval | None:
    """Return the percentile bootstrap interval of a metric, from the confusion matrix alone.

    Drawing as many examples as there are, with replacement, is the same as drawing the matrix's
    cells from a multinomial distribution.

    Args:
        metric: the metric's name in the config.
        value: its measured value.
        confusion: numbers of examples, labels in rows and predictions in columns.
        seed: seed of the resamples.

    Returns:
        None where the matrix does not give `value`: the metric is not a function of it, or is of
        another form than its name says.
    """
    counts = np.asarray(confusion, dtype=np.int64)
    compute, total = _METRICS.get(metric), int(counts.sum())
    if compute is None or total == 0 or abs(float(compute(counts)) - value) > _AGREEMENT:
        return None
    cells = stats.multinomial.rvs(
        total, counts.ravel() / total, size=RESAMPLES, random_state=np.random.default_rng(seed)
    )
    values = compute(cells.reshape(RESAMPLES, *counts.shape))
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def scores_by_class(confusion: Sequence[Sequence[int]]) -> list[ClassScores]:
    """Return precision, recall and F1 of each class."""
    counts = np.asarray(confusion, dtype=np.int64)
    scores = []
    for index in range(len(counts)):
        right = int(counts[index, index])
        true, predicted = int(counts[index].sum()), int(counts[:, index].sum())
        scores.append(
            ClassScores(
                precision=right / predicted if predicted else None,
                recall=right / true if true else None,
                f1=2 * right / (true + predicted) if true + predicted else None,
                support=true,
            )
        )
    return scores


def _f1(counts: Counts) -> NDArray[np.float64]:
    """Return each class' F1, `(..., classes)`; NaN if it is neither a label nor predicted."""
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    both = counts.sum(axis=-1) + counts.sum(axis=-2)
    scores: NDArray[np.float64] = np.where(both > 0, 2 * right / np.maximum(both, 1), np.nan)
    return scores


def _macro_f1(counts: Counts) -> NDArray[np.float64]:
    return np.asarray(np.nanmean(_f1(counts), axis=-1))


def _micro_f1(counts: Counts) -> NDArray[np.float64]:
    right = np.diagonal(counts, axis1=-2, axis2=-1).sum(axis=-1)
    return np.asarray(right / counts.sum(axis=(-2, -1)))


def _weighted_f1(counts: Counts) -> NDArray[np.float64]:
    support = counts.sum(axis=-1)
    return np.asarray((np.nan_to_num(_f1(counts)) * support).sum(axis=-1) / support.sum(axis=-1))


_METRICS: Mapping[str, Callable[[Counts], NDArray[np.float64]]] = {
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "weighted_f1": _weighted_f1,
    "accuracy": _micro_f1,  # the same where every example has one label
}
