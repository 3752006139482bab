"""Computes the difference of two means and its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

RESAMPLES = 9_999
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Effect:
    """The difference between two sets of values, in the values' own unit.

    Attributes:
        difference: difference of the means, ours minus theirs.
        low: lower end of its bootstrap confidence interval.
        high: the upper end.
        superiority: share of pairs (one of ours, one of theirs) in which ours is larger; ties count
            half (Vargha and Delaney's A). 0.5 means that neither is.
    """

    difference: float
    low: float
    high: float
    superiority: float


def effect_of(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
) -> Effect:
    """Return the difference of the means with its 95% percentile bootstrap interval.

    With few values there are few different resamples: with three or five values on a side, the
    interval is too narrow and only a rough guide.

    Args:
        ours: a value for each seed.
        theirs: the values to compare with.
        paired: whether values at the same position belong together and are drawn together.

    Raises:
        ValueError: a side has fewer than two values.
    """
    if min(len(ours), len(theirs)) < 2:
        raise ValueError("a bootstrap needs two values on each side")
    left, right = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    interval = stats.bootstrap(
        (left, right),
        difference_of_means,
        n_resamples=RESAMPLES,
        paired=paired,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    pairs = np.sign(left - right if paired else left[:, None] - right[None, :])
    return Effect(
        difference=float(left.mean() - right.mean()),
        low=float(interval.low),
        high=float(interval.high),
        superiority=float((pairs.mean() + 1) / 2),
    )


def difference_of_means(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    """Return the difference of the means along an axis, as SciPy's resampling asks for it."""
    difference: NDArray[np.float64] = ours.mean(axis=axis) - theirs.mean(axis=axis)
    return difference
