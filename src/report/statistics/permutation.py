"""The permutation test of the paper's appendix A.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PERMUTATIONS = 10_000
"""As many as the paper draws."""


@dataclass(frozen=True)
class PermutationTest:
    """The share of permutations with a difference of means as large as the one seen.

    Attributes:
        one_sided: p that ours is better (the paper's).
        two_sided: p that they differ: twice the smaller one-sided p, at most 1.
        exact: whether every permutation was looked at, not a random 10,000 of them.
        smallest: the smallest one-sided p that so few values can give.
    """

    one_sided: float
    two_sided: float
    exact: bool
    smallest: float


def permutation_test(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> PermutationTest:
    """Test the difference of means by exchanging values between the two sides.

    Args:
        ours: a value a seed.
        theirs: the same of what it is compared with.
        paired: values at the same place belong to the same seed; only they are exchanged.
        permutations: bound up to which all are enumerated; above it, as many are drawn.
        seed: of that draw.

    Raises:
        ValueError: fewer than two values on a side, or pairs that are none.
    """
    if min(len(ours), len(theirs)) < 2:
        raise ValueError("a permutation test needs two values on each side")
    if paired and len(ours) != len(theirs):
        raise ValueError("paired values must be as many on one side as on the other")
    count = 2 ** len(ours) if paired else comb(len(ours) + len(theirs), len(ours))

    def tested(alternative: str) -> float:
        result = stats.permutation_test(
            (np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)),
            _difference,
            permutation_type="samples" if paired else "independent",
            vectorized=True,
            n_resamples=np.inf if count <= permutations else permutations,
            alternative=alternative,
            rng=np.random.default_rng(seed),
        )
        return float(result.pvalue)

    exact = count <= permutations
    smallest = 1 / count if exact else 1 / (permutations + 1)
    return PermutationTest(tested("greater"), tested("two-sided"), exact, smallest)


def _difference(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    difference: NDArray[np.float64] = ours.mean(axis=axis) - theirs.mean(axis=axis)
    return difference
