"""Computes confidence intervals of means and of their differences, by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev
from warnings import catch_warnings

from scipy import stats

from tartan.evaluation.interval import Interval

LEAST_SPREAD = 1e-6
"""Standard deviation below which values are equal but for rounding, and tell no spread."""


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % interval of the mean; None where the values tell no spread.

    Values that are all equal, which a few seeds of a coarse metric can be, do not show that others
    would be: an interval without width would claim that.

    Args:
        values: a value for each seed.
    """
    return Interval(*stats.ttest_1samp(values, 0).confidence_interval()) if _vary(values) else None


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
    with catch_warnings(action="ignore", category=RuntimeWarning):  # one side may be constant
        return Interval(*stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval())


def _vary(values: Sequence[float]) -> bool:
    return len(values) > 1 and stdev(values) >= LEAST_SPREAD
