"""Intervals: against SciPy's tests, their coverage, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tartan.report.statistics.interval import difference_interval, mean_interval


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (9, 4)])
def test_the_interval_of_a_difference_is_welch_s(sizes):
    rng = np.random.default_rng(sum(sizes))
    ours, theirs = rng.normal(1, 1, sizes[0]).tolist(), rng.normal(0, 3, sizes[1]).tolist()
    found = difference_interval(ours, theirs)
    reference = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))


def test_the_interval_of_a_mean_by_hand():
    # t(2) = 4.303; the standard error of 1, 2, 3 is 1 / sqrt(3)
    found = mean_interval([1, 2, 3])
    assert (found.low, found.high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seeds", [3, 5])
def test_with_few_seeds_it_holds_the_difference_as_often_as_it_says(seeds, paired):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1500):
        ours, theirs = rng.normal(0, 1, (2, seeds))
        found = mean_interval(ours - theirs) if paired else difference_interval(ours, theirs)
        held += found.low <= 0 <= found.high
    assert held / 1500 >= 0.93


def test_one_side_may_be_constant():
    found = difference_interval([0.62, 0.62, 0.62], [0.60, 0.61, 0.59])
    mean = mean_interval([0.60, 0.61, 0.59])
    assert (found.low, found.high) == pytest.approx((0.62 - mean.high, 0.62 - mean.low))


@pytest.mark.parametrize("values", [[0.02], [0.02] * 3, [0.7 - 0.6, 0.8 - 0.7, 0.9 - 0.8]])
def test_values_that_are_equal_but_for_rounding_have_none(values):
    assert mean_interval(values) is None


def test_a_difference_of_constants_has_none():
    assert difference_interval([0.62] * 3, [0.60] * 3) is None
    with pytest.raises(ValueError, match="two values"):
        difference_interval([0.5], [0.1, 0.2])
