"""The permutation test: by enumeration, by properties, and against the paper's p-values."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.report.statistics.permutation import permutation_test
from tartan.report.tables.paper import paper_tables

SCORES = st.lists(st.integers(0, 20), min_size=2, max_size=4)


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


def test_three_against_three_by_hand():
    """The highest of C(6, 3) = 20 ways: 1/20, and twice that if either side may be the better."""
    found = permutation_test([4, 5, 6], [1, 2, 3])
    assert (found.one_sided, found.two_sided) == pytest.approx((0.05, 0.1))
    assert found.smallest_two_sided == pytest.approx(0.1)


def test_two_against_two_by_hand():
    """Differences of the six ways: 2, 1, 0, 0, -1, -2; seen: 1."""
    found = permutation_test([4, 2], [3, 1])
    assert found.one_sided == pytest.approx(2 / 6)
    assert found.two_sided == pytest.approx(4 / 6)


def test_three_pairs_by_hand():
    """All three are better: one of 2^3 ways."""
    found = permutation_test([2, 5, 9], [1, 4, 7], paired=True)
    assert (found.one_sided, found.smallest_two_sided) == pytest.approx((1 / 8, 2 / 8))
    unpaired = permutation_test([2, 5, 9], [1, 4, 7])
    assert unpaired.one_sided > found.one_sided


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


def test_pairs_have_to_be_pairs():
    with pytest.raises(ValueError, match="as many"):
        permutation_test([1, 2, 3], [1, 2], paired=True)


def test_under_the_null_p_is_below_its_level_as_often_as_it_says():
    rng = np.random.default_rng(1)
    p = [permutation_test(*rng.standard_normal((2, 5))).one_sided for _ in range(600)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=0.05)


PUBLISHED = [
    (table.key, task, name, row.scores[name], max(row.scores[a] for a in against), p)
    for table in paper_tables()
    for task, row in table.published.items()
    for against in [[a for a in table.against if a in row.scores]]
    for name, p in row.p.items()
]


@pytest.mark.parametrize(("table", "task", "name", "ours", "theirs", "published"), PUBLISHED)
def test_the_papers_p_values_are_of_the_order_that_its_means_and_deviations_give(
    table, task, name, ours, theirs, published
):
    """Ten seeds with exactly the published mean and deviation, drawn again and again.

    The paper prints three decimals; the scores of its single runs are not published, so p can only
    be simulated: the published one has to lie among the simulated ones, or within a factor of 2.5.
    """
    rng = np.random.default_rng(0)

    def seeds(mean, deviation):
        values = rng.standard_normal(10)
        return mean + deviation * (values - values.mean()) / values.std(ddof=1)

    simulated = [
        permutation_test(seeds(*ours), seeds(*theirs), permutations=2_000).one_sided
        for _ in range(15)
    ]
    low, high = min(simulated) / 2.5, 2.5 * max(simulated) + 0.0005
    assert low - 0.0005 <= published <= high
