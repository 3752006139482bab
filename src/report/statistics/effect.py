"""The size of a difference, and its uncertainty."""

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
        difference: of the means, ours minus theirs.
        low: lower end of its bootstrap confidence interval.
        high: the upper end.
        superiority: the share of pairs (one of ours, one of theirs) in which ours is larger, ties
            counted by half (Vargha and Delaney's A): 0.5 says that neither is.
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
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Effect:
    """The difference of the means with its 95% percentile bootstrap interval.

    Few values have few different resamples: with three or five on a side the interval is too
    narrow, and only a rough guide.

    Args:
        paired: values at the same place belong together, and are drawn together.
        resamples: of the bootstrap.
        seed: of its draws.

    Raises:
        ValueError: fewer than two values on a side.
    """
    if min(len(ours), len(theirs)) < 2:
        raise ValueError("a bootstrap needs two values on each side")
    left, right = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    interval = stats.bootstrap(
        (left, right),
        _difference,
        n_resamples=resamples,
        paired=paired,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    pairs = np.sign(left - right if paired else left[:, None] - right[None, :])
    return Effect(
        difference=float(left.mean() - right.mean()),
        low=float(interval.low),
        high=float(interval.high),
        superiority=float((pairs.mean() + 1) / 2),
    )


def _difference(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    difference: NDArray[np.float64] = ours.mean(axis=axis) - theirs.mean(axis=axis)
    return difference
