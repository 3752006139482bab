"""Differences and their bootstrap intervals."""

from __future__ import annotations

import numpy as np
import pytest

from src.report.statistics.effect import effect_of


def slow_interval(ours, theirs, paired, draws=4_000):
    rng = np.random.default_rng(5)
    ours, theirs = np.array(ours), np.array(theirs)
    means = []
    for _ in range(draws):
        left = rng.integers(0, len(ours), len(ours))
        right = left if paired else rng.integers(0, len(theirs), len(theirs))
        means.append(ours[left].mean() - theirs[right].mean())
    return np.percentile(means, [2.5, 97.5])


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_that_of_a_plain_bootstrap(seed, paired):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(1, 1, 12), rng.normal(0, 2, 12)
    found = effect_of(ours, theirs, paired=paired)
    assert found.difference == pytest.approx(ours.mean() - theirs.mean())
    low, high = slow_interval(ours, theirs, paired)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.12)


def test_superiority_by_hand():
    assert effect_of([3, 4], [1, 2]).superiority == 1
    assert effect_of([1, 2], [3, 4]).superiority == 0
    assert effect_of([1, 2], [1, 2]).superiority == 0.5
    # pairs: 2>1, 2=2, 4>1, 4>2
    assert effect_of([2, 4], [1, 2]).superiority == pytest.approx(3.5 / 4)
    assert effect_of([2, 1], [1, 2], paired=True).superiority == 0.5
    assert effect_of([2, 3], [1, 2], paired=True).superiority == 1


def test_values_that_do_not_vary_have_no_width():
    found = effect_of([2, 2, 2], [1, 1, 1])
    assert (found.low, found.difference, found.high) == (1, 1, 1)


def test_pairs_that_differ_alike_have_no_width_however_the_seeds_vary():
    found = effect_of([1, 5, 9], [0, 4, 8], paired=True)
    assert (found.low, found.high) == pytest.approx((1, 1))
    assert effect_of([1, 5, 9], [0, 4, 8]).high > 1


def test_the_same_values_give_the_same_interval():
    assert effect_of([1, 2, 4], [2, 3, 1]) == effect_of([1, 2, 4], [2, 3, 1])


def test_one_seed_has_no_interval():
    with pytest.raises(ValueError, match="two values"):
        effect_of([1], [1, 2])
