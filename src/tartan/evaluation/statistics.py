"""Computes intervals, effects and tests over seeds, and the scores of each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import stdev
from typing import NamedTuple
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PERMUTATIONS = 10_000
"""Number of permutations that are drawn, as in the paper."""
LEAST_SPREAD = 1e-6
"""Standard deviation below which values are equal but for rounding, and tell no spread."""
_DECIMALS = 12
"""Decimals of a difference of shares that are not a matter of rounding."""


class Interval(NamedTuple):
    """An interval of 95 %, in the values' own unit."""

    low: float
    high: float


@dataclass(frozen=True)
class PermutationTest:
    """The p-values: shares of permutations with a difference as large as the observed one."""

    one_sided: float  # against ours being no better, as in the paper
    two_sided: float  # against no difference: twice the smaller one-sided p, at most 1
    smallest_two_sided: float  # that is possible with so few values


@dataclass(frozen=True)
class Effect:
    """Difference of two means, and its interval: Welch's, of pairs Student's."""

    difference: float
    interval: Interval | None  # None where the values tell no spread


def permutation_test(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
    permutations: int = PERMUTATIONS,
) -> PermutationTest:
    """Test the difference of means by exchanging values between the sides (appendix A.2).

    If `paired`, values at the same position belong to one seed, and only they are exchanged. All
    ways are tried if they are at most `permutations`, else so many are drawn.
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
            n_resamples=permutations,
            alternative=alternative,
            rng=np.random.default_rng(0),
        )
        return float(result.pvalue)

    smallest = 1 / (count if count <= permutations else permutations + 1)
    return PermutationTest(p_value("greater"), p_value("two-sided"), min(1.0, 2 * smallest))


def effect_of(ours: Sequence[float], theirs: Sequence[float], *, paired: bool = False) -> Effect:
    """Return the difference of the means with its interval; arguments as `permutation_test`."""
    difference = float(np.mean(ours) - np.mean(theirs))
    if paired:
        return Effect(difference, mean_interval(np.subtract(ours, theirs).tolist()))
    return Effect(difference, difference_interval(ours, theirs))


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of the mean over seeds; None where the values tell no spread."""
    return Interval(*stats.ttest_1samp(values, 0).confidence_interval()) if _vary(values) else None


def difference_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Return Welch's interval of the difference of two means; None where neither side varies."""
    if not (_vary(ours) or _vary(theirs)):
        return None
    with catch_warnings(action="ignore", category=RuntimeWarning):  # one side may be constant
        return Interval(*stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval())


def _vary(values: Sequence[float]) -> bool:
    # an interval without width would claim that other seeds have the same value
    return len(values) > 1 and stdev(values) >= LEAST_SPREAD


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Holm's correction (1979), in the given order."""
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(raised, 1.0))
    return [float(p) for p in adjusted]


def scores_by_class(confusion: Sequence[Sequence[int]]) -> list[dict[str, float | None]]:
    """Return precision, recall, f1 and support of each class, None where a denominator is 0."""
    counts = np.asarray(confusion, dtype=np.int64)
    totals = np.stack([counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)], axis=1)
    return [
        {
            "precision": right / predicted if predicted else None,
            "recall": right / true if true else None,
            "f1": 2 * right / (true + predicted) if true + predicted else None,
            "support": true,
        }
        for right, true, predicted in totals.tolist()
    ]
