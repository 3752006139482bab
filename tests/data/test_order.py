"""Random orders of examples, the same in parts; and which examples a size takes."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.core.seeding import generator_for
from tartan.data import order
from tartan.data.order import SHUFFLED_WHOLE, ExampleOrder, RandomOrder, choose_rows
from tartan.errors import UserError


@pytest.fixture
def _no_shuffling(monkeypatch):
    """Every count goes through the network, as only large ones do."""
    monkeypatch.setattr(order, "SHUFFLED_WHOLE", 0)


def permutation(count, seed=0):
    return RandomOrder(count, generator_for(seed, "order"))


@pytest.mark.usefixtures("_no_shuffling")
@pytest.mark.parametrize("count", [1, 2, 3, 17, 100, 4097])
def test_every_index_comes_once(count):
    assert sorted(permutation(count).part(0, count).tolist()) == list(range(count))


@pytest.mark.usefixtures("_no_shuffling")
@settings(max_examples=50)
@given(count=st.integers(1, 3000), seed=st.integers(0, 99), data=st.data())
def test_a_part_is_what_the_whole_has_there(count, seed, data):
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start, count + 5))
    whole = permutation(count, seed).part(0, count)
    assert permutation(count, seed).part(start, stop).tolist() == whole[start:stop].tolist()


def test_a_part_of_a_huge_order_has_no_index_twice():
    count = 10**12 + 7
    assert count > SHUFFLED_WHOLE
    part = permutation(count).part(count - 100_000, count)
    assert len(set(part.tolist())) == 100_000
    assert 0 <= part.min() <= part.max() < count


@given(st.integers(1, 20), st.integers(0, 100), st.integers(1, 70))
def test_any_part_of_the_endless_order_is_that_of_the_whole(count, start, length):
    whole = ExampleOrder(count, 1, "s").indices(0, start + length)
    assert ExampleOrder(count, 1, "s").indices(start, length) == whole[start:]
    for epoch in range(len(whole) // count):
        assert sorted(whole[epoch * count : (epoch + 1) * count]) == list(range(count))


def test_every_example_is_used_equally_often_and_each_epoch_has_another_order():
    examples = ExampleOrder(10, 0, "s")
    used = Counter(i for step in range(20) for i in examples.indices(step * 7, 7))
    assert set(used.values()) == {14}
    assert examples.indices(0, 10) != examples.indices(10, 10)


def choose(available=200, size=2.0, train=10, seed=0):
    return choose_rows(available, size, train, seed, "auxiliary.size", "made up").tolist()


@settings(max_examples=50)
@given(sizes=st.lists(st.floats(0.1, 20), min_size=2, max_size=5), seed=st.integers(0, 1000))
def test_a_smaller_choice_is_part_of_a_larger_one(sizes, seed):
    chosen = [choose(size=size, seed=seed) for size in sorted(sizes)]
    assert [len(rows) for rows in chosen] == [round(size * 10) for size in sorted(sizes)]
    assert all(rows == sorted(set(rows)) and rows[-1] < 200 for rows in chosen)
    for smaller, larger in itertools.pairwise(chosen):
        assert set(smaller) <= set(larger)


@pytest.mark.parametrize("size", [0.04, 20.1])
def test_nothing_and_more_than_there_is_are_refused(size):
    assert choose(size=20) == list(range(200))
    with pytest.raises(UserError, match=rf"^auxiliary\.size={size} asks for .* made up has 200"):
        choose(size=size)
