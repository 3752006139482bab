"""Computes intervals, effects and tests: over seeds, and over examples of a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import stdev
from typing import NamedTuple
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

PERMUTATIONS = 10_000
"""Number of permutations that are drawn, as in the paper."""
RESAMPLES = 10_000
LEAST_SPREAD = 1e-6
"""Standard deviation below which values are equal but for rounding, and tell no spread."""
_DECIMALS = 12
"""Decimals of a difference of shares that are not a matter of rounding."""
_AT_ONCE = 1 << 22
"""Number of counts that are held in memory at a time."""


class Interval(NamedTuple):
    """An interval of 95 %, in the values' own unit."""

    low: float
    high: float


@dataclass(frozen=True)
class PermutationTest:
    """The p-values: shares of permutations with a difference as large as the observed one.

    Attributes:
        one_sided: against ours being no better, as in the paper.
        two_sided: against no difference: twice the smaller one-sided p, at most 1.
        smallest_two_sided: the smallest two-sided p that is possible with so few values.
    """

    one_sided: float
    two_sided: float
    smallest_two_sided: float


@dataclass(frozen=True)
class Effect:
    """The difference between two sets of values, in the values' own unit.

    Attributes:
        difference: difference of the means, ours minus theirs.
        interval: Welch's, of pairs Student's; None where the values tell no spread.
        superiority: share of pairs (one of ours, one of theirs) in which ours is larger; ties count
            half (Vargha and Delaney's A).
    """

    difference: float
    interval: Interval | None
    superiority: float


def permutation_test(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
    permutations: int = PERMUTATIONS,
) -> PermutationTest:
    """Test the difference of means by exchanging values between the sides (appendix A.2).

    Args:
        ours: a value for each seed.
        theirs: the values to compare with.
        paired: whether values at the same position belong to the same seed; then only they are
            exchanged.
        permutations: maximum number that are enumerated; above it, so many are drawn.

    Raises:
        ValueError: a side has fewer than two values, or the sides of pairs differ in length.
    """
    if min(len(ours), len(theirs)) < 2 or (paired and len(ours) != len(theirs)):
        raise ValueError("a comparison needs two values on each side, and pairs as many on both")
    count = 2 ** len(ours) if paired else comb(len(ours) + len(theirs), len(ours))

    def difference(
        left: NDArray[np.float64], right: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        # rounded, so that differences which are equal but for rounding count as ties
        return np.asarray((left.mean(axis=axis) - right.mean(axis=axis)).round(_DECIMALS))

    def p_value(alternative: str) -> float:
        result = stats.permutation_test(
            (np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)),
            difference,
            permutation_type="samples" if paired else "independent",
            vectorized=True,
            n_resamples=permutations,  # or, if these are fewer, all ways once
            alternative=alternative,
            rng=np.random.default_rng(0),
        )
        return float(result.pvalue)

    smallest = 1 / (count if count <= permutations else permutations + 1)
    return PermutationTest(p_value("greater"), p_value("two-sided"), min(1.0, 2 * smallest))


def effect_of(ours: Sequence[float], theirs: Sequence[float], *, paired: bool = False) -> Effect:
    """Return the difference of the means with its interval; arguments as `permutation_test`."""
    left, right = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    apart = left - right if paired else left[:, None] - right[None, :]
    interval = mean_interval(apart.tolist()) if paired else difference_interval(ours, theirs)
    superiority = float((np.sign(apart).mean() + 1) / 2)
    return Effect(float(left.mean() - right.mean()), interval, superiority)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of the mean over seeds; None where the values tell no spread.

    Values that are all equal, which a few seeds of a coarse metric can be, do not show that others
    would be: an interval without width would claim that.
    """
    return Interval(*stats.ttest_1samp(values, 0).confidence_interval()) if _vary(values) else None


def difference_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Return Welch's interval of the difference of two means; None where neither side varies."""
    if not (_vary(ours) or _vary(theirs)):
        return None
    with catch_warnings(action="ignore", category=RuntimeWarning):  # one side may be constant
        return Interval(*stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval())


def _vary(values: Sequence[float]) -> bool:
    return len(values) > 1 and stdev(values) >= LEAST_SPREAD


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Holm's correction (1979), in the given order.

    Comparing them with a level bounds the probability of any false rejection by it. The k-th
    smallest of n is multiplied by n - k + 1, is at least the adjusted one before it, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(raised, 1.0))
    return [float(p) for p in adjusted]


@dataclass(frozen=True)
class ClassScores:
    """Scores of one class against the others; None where the denominator is 0."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int


def scores_by_class(confusion: Sequence[Sequence[int]]) -> list[ClassScores]:
    """Return precision, recall and F1 of each class; labels in rows, predictions in columns."""
    counts = np.asarray(confusion, dtype=np.int64)
    totals = np.stack([counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)], axis=1)
    return [
        ClassScores(
            precision=right / predicted if predicted else None,
            recall=right / true if true else None,
            f1=2 * right / (true + predicted) if true + predicted else None,
            support=true,
        )
        for right, true, predicted in totals.tolist()
    ]


def bootstrap_interval(
    metric: str, value: float, confusion: Sequence[Sequence[int]]
) -> Interval | None:
    """Return the percentile bootstrap interval over examples of F1 or the accuracy.

    Drawing as many examples as there are, with replacement, is the same as drawing the confusion
    matrix's cells from a multinomial distribution. None where the matrix does not give `value`: the
    metric is not a function of it, or is of another form than its name says.
    """
    counts = np.asarray(confusion, dtype=np.int64)
    right, true, predicted = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    total = int(counts.sum())
    if metric not in _AVERAGES or total == 0:
        return None
    if abs(_average(metric, right, true, predicted) - value) > 1e-4:
        return None
    generator, values = np.random.default_rng(0), []
    labels, predictions = np.nonzero(counts)  # only cells that are not empty are drawn
    shares, diagonal = counts[labels, predictions] / total, labels == predictions
    of_label, of_prediction = (  # one-hot, (cells, classes)
        sparse.csr_array((np.ones_like(of), (range(len(of)), of)), shape=(len(of), len(counts)))
        for of in (labels, predictions)
    )
    block = max(1, _AT_ONCE // max(len(labels), len(counts)))
    for start in range(0, RESAMPLES, block):
        drawn = generator.multinomial(total, shares, size=min(block, RESAMPLES - start))
        of_right = drawn[:, diagonal] @ of_label[diagonal]
        values.append(_average(metric, of_right, drawn @ of_label, drawn @ of_prediction))
    low, high = np.quantile(np.concatenate(values), [0.025, 0.975])
    return Interval(float(low), float(high))


_AVERAGES = ("macro_f1", "micro_f1", "weighted_f1", "accuracy")


def _average(
    metric: str, right: NDArray[np.int64], true: NDArray[np.int64], predicted: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return a metric of numbers of examples by class, `(..., classes)`."""
    if metric in ("micro_f1", "accuracy"):  # the same where every example has one label
        return np.asarray(right.sum(axis=-1) / true.sum(axis=-1))
    both = true + predicted  # of a class that is neither a label nor predicted, F1 is NaN
    f1 = np.where(both > 0, 2 * right / np.maximum(both, 1), np.nan)
    if metric == "macro_f1":
        return np.asarray(np.nanmean(f1, axis=-1))
    return np.asarray((np.nan_to_num(f1) * true).sum(axis=-1) / true.sum(axis=-1))
