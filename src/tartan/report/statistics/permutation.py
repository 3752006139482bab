"""Runs the permutation test of the paper's appendix A.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PERMUTATIONS = 10_000
"""Number of permutations that are drawn, as in the paper."""
_DECIMALS = 12
"""Decimals of a difference of shares that are not a matter of rounding."""


@dataclass(frozen=True)
class PermutationTest:
    """The p-values: shares of permutations with a difference as large as the observed one.

    Attributes:
        one_sided: p-value against ours being no better, as in the paper.
        two_sided: p-value against no difference: twice the smaller one-sided p, at most 1.
        smallest_two_sided: the smallest two-sided p that is possible with so few values.
    """

    one_sided: float
    two_sided: float
    smallest_two_sided: float


def permutation_test(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    paired: bool = False,
    permutations: int = PERMUTATIONS,
) -> PermutationTest:
    """Test the difference of means by exchanging values between the two sides.

    Args:
        ours: a value for each seed.
        theirs: the values to compare with.
        paired: whether values at the same position belong to the same seed; then only they are
            exchanged.
        permutations: maximum number that are enumerated; above it, so many are drawn.

    Raises:
        ValueError: a side has fewer than two values, or the sides of pairs differ in length.
    """
    if min(len(ours), len(theirs)) < 2:
        raise ValueError("a permutation test needs two values on each side")
    if paired and len(ours) != len(theirs):
        raise ValueError("paired values must be as many on one side as on the other")
    count = 2 ** len(ours) if paired else comb(len(ours) + len(theirs), len(ours))

    def tested(alternative: str) -> float:
        result = stats.permutation_test(
            (np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)),
            _difference_of_means,
            permutation_type="samples" if paired else "independent",
            vectorized=True,
            n_resamples=permutations,  # or, if these are fewer, all ways once
            alternative=alternative,
            rng=np.random.default_rng(0),
        )
        return float(result.pvalue)

    smallest = 1 / (count if count <= permutations else permutations + 1)
    return PermutationTest(tested("greater"), tested("two-sided"), min(1.0, 2 * smallest))


def _difference_of_means(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axis: int = -1
) -> NDArray[np.float64]:
    """Return the difference of the means along an axis, as SciPy's resampling asks for it.

    It is rounded, so that differences which are equal but for rounding count as ties.
    """
    difference: NDArray[np.float64] = ours.mean(axis=axis) - theirs.mean(axis=axis)
    return difference.round(_DECIMALS)
