"""Tests, effects and intervals: against enumeration, SciPy, scikit-learn, and by properties."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score

from tartan.evaluation.statistics import (
    difference_interval,
    effect_of,
    holm,
    mean_interval,
    permutation_test,
    scores_by_class,
)

SCORES = st.lists(st.integers(0, 20), min_size=2, max_size=4)
P = st.lists(st.floats(0, 1), max_size=12)


def enumerated(ours, theirs):
    """One-sided p of an unpaired test, by looking at every way to deal the values out."""
    pool, n = [*ours, *theirs], len(ours)
    seen = np.mean(ours) - np.mean(theirs)
    differences = []
    for chosen in combinations(range(len(pool)), n):
        left = [pool[i] for i in chosen]
        right = [pool[i] for i in range(len(pool)) if i not in chosen]
        differences.append(np.mean(left) - np.mean(right))
    return np.mean(np.array(differences) >= seen - 1e-9)


def enumerated_in_pairs(ours, theirs):
    """The same of a paired test: each pair stays or changes sides."""
    apart = np.array(ours) - np.array(theirs)
    all_signs = product([1, -1], repeat=len(apart))
    means = np.array([np.mean(np.array(signs) * apart) for signs in all_signs])
    return np.mean(means >= np.mean(apart) - 1e-9)


@settings(max_examples=40)
@given(SCORES, SCORES)
def test_small_tests_are_the_enumeration(ours, theirs):
    found = permutation_test(ours, theirs)
    assert found.one_sided == pytest.approx(enumerated(ours, theirs))
    size = min(len(ours), len(theirs))
    found = permutation_test(ours[:size], theirs[:size], paired=True)
    assert found.one_sided == pytest.approx(enumerated_in_pairs(ours[:size], theirs[:size]))


@settings(max_examples=25)
@given(SCORES, SCORES, st.integers(1, 5), st.integers(-9, 9))
def test_neither_unit_nor_zero_matters_and_the_other_side_is_the_other_tail(
    ours, theirs, unit, zero
):
    found = permutation_test(ours, theirs)
    moved = permutation_test([unit * x + zero for x in ours], [unit * x + zero for x in theirs])
    assert moved.one_sided == pytest.approx(found.one_sided)
    other = permutation_test(theirs, ours)
    assert other.two_sided == pytest.approx(found.two_sided)
    assert found.two_sided == pytest.approx(min(1, 2 * min(found.one_sided, other.one_sided)))


def test_seven_seeds_are_enumerated_and_eight_are_drawn():
    rng = np.random.default_rng(0)
    seven, eight = rng.random((2, 7)), rng.random((2, 8))
    assert permutation_test(*seven).smallest_two_sided == 2 / comb(14, 7)
    drawn = permutation_test(*eight)
    assert drawn.smallest_two_sided == 2 / 10_001
    every = permutation_test(*eight, permutations=20_000)
    assert every.smallest_two_sided == 2 / comb(16, 8)
    assert drawn.one_sided == pytest.approx(every.one_sided, abs=0.02)
    assert drawn == permutation_test(*eight)
    assert permutation_test(*eight, paired=True).smallest_two_sided == 2 / 2**8


def test_rounding_loses_no_ties():
    """Two of the 70 ways give the observed difference, one of them smaller by rounding."""
    found = permutation_test([0.9, 0.902, 0.9005, 0.901], [0.9, 0.8985, 0.899, 0.898])
    assert found.two_sided == pytest.approx(4 / 70)


@pytest.mark.parametrize(("ours", "theirs", "paired"), [([1], [1, 2], False), ([1, 2], [1], False)])
def test_one_seed_is_no_test(ours, theirs, paired):
    with pytest.raises(ValueError, match="two values"):
        permutation_test(ours, theirs, paired=paired)


@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_is_welch_s_and_of_pairs_student_s(paired):
    found = effect_of([0.5, 0.7, 0.9], [0.4, 0.5, 0.7], paired=paired)
    assert found.difference == pytest.approx(0.5 / 3)
    test = stats.ttest_rel if paired else partial(stats.ttest_ind, equal_var=False)
    reference = test([0.5, 0.7, 0.9], [0.4, 0.5, 0.7]).confidence_interval(0.95)
    interval = (found.interval.low, found.interval.high)
    assert interval == pytest.approx((reference.low, reference.high))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seeds", [3, 5])
def test_with_few_seeds_it_holds_the_difference_as_often_as_it_says(seeds, paired):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(600):
        ours, theirs = rng.normal(0, 1, (2, seeds))
        found = mean_interval(ours - theirs) if paired else difference_interval(ours, theirs)
        held += found.low <= 0 <= found.high
    assert held / 600 >= 0.93


@pytest.mark.parametrize("values", [[0.02], [0.02] * 3, [0.7 - 0.6, 0.8 - 0.7, 0.9 - 0.8]])
def test_values_that_are_equal_but_for_rounding_have_none(values):
    assert mean_interval(values) is None
    assert difference_interval(values, [0.5] * 3) is None


@given(P, st.floats(0.001, 0.5))
def test_what_is_rejected_is_what_stepping_down_rejects(p, level):
    """Holm as he words it: go on from the smallest until one is above level / how many are left."""
    rejected = set()
    for step, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] * (len(p) - step) > level:
            break
        rejected.add(index)
    assert {i for i, one in enumerate(holm(p)) if one <= level} == rejected


def test_f1_of_each_class_is_scikit_learns():
    rng = np.random.default_rng(0)
    labels, predictions = rng.integers(0, 4, (2, 200))
    counts = np.zeros((5, 5), dtype=np.int64)  # of the fifth there is none
    np.add.at(counts, (labels, predictions), 1)
    expected = f1_score(labels, predictions, labels=range(5), average=None, zero_division=0)
    assert [one["f1"] or 0 for one in scores_by_class(counts.tolist())] == pytest.approx(expected)
