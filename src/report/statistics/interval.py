"""Computes confidence intervals of means and of their differences, by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev, variance

from scipy import stats

from src.evaluation.interval import Interval

CONFIDENCE = 0.95
LEAST_SPREAD = 1e-6
"""Standard deviation below which values are equal but for rounding, and tell no spread."""


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % interval of the mean; None where the values tell no spread.

    Values that are all equal, which a few seeds of a coarse metric can be, do not show that others
    would be: an interval without width would claim that.

    Args:
        values: a value for each seed.
    """
    if not _vary(values):
        return None
    return _interval(fmean(values), stdev(values) / len(values) ** 0.5, len(values) - 1)


def difference_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Return Welch's 95 % interval of the difference of two means, ours minus theirs.

    None where neither side tells a spread (see `mean_interval`). Of paired values, take
    `mean_interval` of their differences.

    Args:
        ours: a value for each seed.
        theirs: the values to compare with; their spread may be another one.

    Raises:
        ValueError: a side has fewer than two values.
    """
    if min(len(ours), len(theirs)) < 2:
        raise ValueError("the interval of a difference needs two values on each side")
    if not (_vary(ours) or _vary(theirs)):
        return None
    left, right = variance(ours) / len(ours), variance(theirs) / len(theirs)
    # Satterthwaite's; SciPy's own test warns where one side is constant
    freedom = (left + right) ** 2 / (left**2 / (len(ours) - 1) + right**2 / (len(theirs) - 1))
    return _interval(fmean(ours) - fmean(theirs), (left + right) ** 0.5, freedom)


def _vary(values: Sequence[float]) -> bool:
    return len(values) > 1 and stdev(values) >= LEAST_SPREAD


def _interval(middle: float, error: float, freedom: float) -> Interval:
    low, high = stats.t.interval(CONFIDENCE, freedom, middle, error)
    return Interval(float(low), float(high))
