"""A random order of many examples: a permutation, seeded, and the same in parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.core.seeding import generator_for
from tartan.data import permutation
from tartan.data.permutation import SHUFFLED_WHOLE, RandomOrder


@pytest.fixture
def _no_shuffling(monkeypatch):
    """Every count goes through the network, as only large ones do."""
    monkeypatch.setattr(permutation, "SHUFFLED_WHOLE", 0)


def order(count, seed=0):
    return RandomOrder(count, generator_for(seed, "order"))


@pytest.mark.usefixtures("_no_shuffling")
@pytest.mark.parametrize("count", [1, 2, 3, 5, 16, 17, 99, 100, 101, 4095, 4097, 10_000])
def test_every_index_comes_once(count):
    assert sorted(order(count).part(0, count).tolist()) == list(range(count))


@pytest.mark.usefixtures("_no_shuffling")
@settings(max_examples=50)
@given(count=st.integers(1, 3000), seed=st.integers(0, 99), data=st.data())
def test_a_part_is_what_the_whole_has_there(count, seed, data):
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start, count + 5))
    whole = order(count, seed).part(0, count)
    assert order(count, seed).part(start, stop).tolist() == whole[start:stop].tolist()


@pytest.mark.usefixtures("_no_shuffling")
def test_it_is_a_function_of_the_seed():
    first, again, other = (order(1000, seed).part(0, 1000).tolist() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.usefixtures("_no_shuffling")
def test_positions_and_values_are_as_good_as_independent():
    """Over many seeds, each value is as often in each tenth, and neighbours do not follow."""
    count, seeds = 200, 2000
    counts, steps = np.zeros((10, 10)), np.zeros(count)
    for seed in range(seeds):
        whole = order(count, seed).part(0, count)
        np.add.at(counts, (np.arange(count) * 10 // count, whole * 10 // count), 1)
        np.add.at(steps, np.diff(whole) % count, 1)
    expected = seeds * count / 100
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert chi < 81 + 5 * np.sqrt(2 * 81)  # 81 degrees of freedom
    expected_step = seeds * (count - 1) / (count - 1)
    assert np.abs(steps[1:] - expected_step).max() < 6 * np.sqrt(expected_step)


def test_small_counts_are_shuffled_as_ever():
    expected = generator_for(3, "order").permutation(1000)
    assert order(1000, 3).part(10, 20).tolist() == expected[10:20].tolist()


def test_a_part_of_a_huge_order_is_had_at_once_and_has_no_index_twice():
    count = 10**12 + 7
    assert count > SHUFFLED_WHOLE
    huge = order(count)
    part = huge.part(count - 100_000, count)
    assert len(set(part.tolist())) == 100_000
    assert part.min() >= 0
    assert part.max() < count
    assert huge.part(5, 6).tolist() == huge.part(0, 10)[5:6].tolist()
