"""Random orders of examples, and which examples a size takes."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.batches import ExampleOrder
from tartan.data.prepared import choose_rows
from tartan.errors import UserError


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
