"""Differences and their intervals."""

from __future__ import annotations

from functools import partial

import pytest
from scipy import stats

from tartan.report.statistics.effect import effect_of

OURS, THEIRS = [0.5, 0.7, 0.9], [0.4, 0.5, 0.7]


@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_is_welch_s_and_of_pairs_student_s(paired):
    found = effect_of(OURS, THEIRS, paired=paired)
    assert found.difference == pytest.approx(0.5 / 3)
    test = stats.ttest_rel if paired else partial(stats.ttest_ind, equal_var=False)
    reference = test(OURS, THEIRS).confidence_interval(0.95)
    interval = (found.interval.low, found.interval.high)
    assert interval == pytest.approx((reference.low, reference.high))


def test_superiority_by_hand():
    assert effect_of([3, 4], [1, 2]).superiority == 1
    assert effect_of([1, 2], [3, 4]).superiority == 0
    assert effect_of([1, 2], [1, 2]).superiority == 0.5
    # pairs: 2>1, 2=2, 4>1, 4>2
    assert effect_of([2, 4], [1, 2]).superiority == pytest.approx(3.5 / 4)
    assert effect_of([2, 1], [1, 2], paired=True).superiority == 0.5
    assert effect_of([2, 3], [1, 2], paired=True).superiority == 1


def test_values_that_do_not_vary_have_no_interval():
    found = effect_of([0.62] * 3, [0.60] * 3)
    assert (found.difference, found.interval) == (pytest.approx(0.02), None)


def test_pairs_that_differ_alike_have_none_however_the_seeds_vary():
    assert effect_of([1, 5, 9], [0, 4, 8], paired=True).interval is None
    assert effect_of([1, 5, 9], [0, 4, 8]).interval.high > 1


def test_one_seed_has_no_interval():
    with pytest.raises(ValueError, match="two values"):
        effect_of([1], [1, 2])
