"""Computes scores of classes, and intervals of metrics, from confusion matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tartan.evaluation.interval import Interval

RESAMPLES = 10_000
_AT_ONCE = 1 << 22
"""Number of counts that are held in memory at a time."""
_AGREEMENT = 1e-4


class Totals(NamedTuple):
    """Numbers of examples of each class, `(..., classes)`, of which all metrics are functions.

    Attributes:
        right: those that are predicted right.
        true: those with the label.
        predicted: those for which it is predicted.
    """

    right: NDArray[np.int64]
    true: NDArray[np.int64]
    predicted: NDArray[np.int64]


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class against the others; None where the denominator is 0."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int


def bootstrap_interval(
    metric: str, value: float, confusion: Sequence[Sequence[int]]
) -> Interval | None:
    """Return the percentile bootstrap interval of a metric, from the confusion matrix alone.

    Drawing as many examples as there are, with replacement, is the same as drawing the matrix's
    cells from a multinomial distribution.

    Args:
        metric: the metric's name in the config.
        value: its measured value.
        confusion: numbers of examples, labels in rows and predictions in columns.

    Returns:
        None where the matrix does not give `value`: the metric is not a function of it, or is of
        another form than its name says.
    """
    counts = np.asarray(confusion, dtype=np.int64)
    compute, total = _METRICS.get(metric), int(counts.sum())
    if compute is None or total == 0:
        return None
    if abs(float(compute(_totals_of(counts))) - value) > _AGREEMENT:
        return None
    values = np.concatenate([compute(drawn) for drawn in _resampled(counts)])
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def _totals_of(counts: NDArray[np.int64]) -> Totals:
    return Totals(counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0))


def _resampled(counts: NDArray[np.int64]) -> Iterator[Totals]:
    """Yield totals of `RESAMPLES` resamples, as many at once as memory is meant for.

    Only cells that are not empty are drawn, so that many classes cost no more than many examples.
    """
    generator = np.random.default_rng(0)
    labels, predictions = np.nonzero(counts)
    cells = counts[labels, predictions]
    of_label, of_prediction = (_membership(own, len(counts)) for own in (labels, predictions))
    right = labels == predictions
    block = max(1, _AT_ONCE // max(len(cells), len(counts)))
    for start in range(0, RESAMPLES, block):
        size = min(block, RESAMPLES - start)
        drawn = generator.multinomial(int(cells.sum()), cells / cells.sum(), size=size)
        yield Totals(
            right=drawn[:, right] @ of_label[right],
            true=drawn @ of_label,
            predicted=drawn @ of_prediction,
        )


def _membership(classes: NDArray[np.int64], count: int) -> sparse.csr_array:
    """Return a one-hot matrix of each cell's class, `(cells, count)`."""
    ones = np.ones(len(classes), dtype=np.int64)
    cells = np.arange(len(classes))
    return sparse.csr_array((ones, (cells, classes)), shape=(len(classes), count))


def scores_by_class(confusion: Sequence[Sequence[int]]) -> list[ClassScores]:
    """Return precision, recall and F1 of each class."""
    scores = []
    totals = np.stack(_totals_of(np.asarray(confusion, dtype=np.int64)), axis=1)
    for right, true, predicted in totals.tolist():
        scores.append(
            ClassScores(
                precision=right / predicted if predicted else None,
                recall=right / true if true else None,
                f1=2 * right / (true + predicted) if true + predicted else None,
                support=true,
            )
        )
    return scores


def _f1(totals: Totals) -> NDArray[np.float64]:
    """Return each class' F1, `(..., classes)`; NaN if it is neither a label nor predicted."""
    both = totals.true + totals.predicted
    scores: NDArray[np.float64] = np.where(both > 0, 2 * totals.right / np.maximum(both, 1), np.nan)
    return scores


def _macro_f1(totals: Totals) -> NDArray[np.float64]:
    return np.asarray(np.nanmean(_f1(totals), axis=-1))


def _micro_f1(totals: Totals) -> NDArray[np.float64]:
    return np.asarray(totals.right.sum(axis=-1) / totals.true.sum(axis=-1))


def _weighted_f1(totals: Totals) -> NDArray[np.float64]:
    weighted = np.nan_to_num(_f1(totals)) * totals.true
    return np.asarray(weighted.sum(axis=-1) / totals.true.sum(axis=-1))


_METRICS: Mapping[str, Callable[[Totals], NDArray[np.float64]]] = {
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "weighted_f1": _weighted_f1,
    "accuracy": _micro_f1,  # the same where every example has one label
}
