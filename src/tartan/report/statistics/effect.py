"""Computes the difference of two means and its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tartan.evaluation.interval import Interval
from tartan.report.statistics.interval import difference_interval, mean_interval


@dataclass(frozen=True)
class Effect:
    """The difference between two sets of values, in the values' own unit.

    Attributes:
        difference: difference of the means, ours minus theirs.
        interval: its 95 % interval; None where the values do not vary.
        superiority: share of pairs (one of ours, one of theirs) in which ours is larger; ties count
            half (Vargha and Delaney's A). 0.5 means that neither is.
    """

    difference: float
    interval: Interval | None
    superiority: float


def effect_of(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
) -> Effect:
    """Return the difference of the means with its 95 % interval: Welch's, of pairs Student's.

    Args:
        ours: a value for each seed.
        theirs: the values to compare with.
        paired: whether values at the same position belong together.

    Raises:
        ValueError: a side has fewer than two values, and they are no pairs.
    """
    left, right = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    apart = left - right if paired else left[:, None] - right[None, :]
    interval = mean_interval(apart.tolist()) if paired else difference_interval(ours, theirs)
    return Effect(
        difference=float(left.mean() - right.mean()),
        interval=interval,
        superiority=float((np.sign(apart).mean() + 1) / 2),
    )
