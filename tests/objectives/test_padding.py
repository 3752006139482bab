"""Micro-batches of similar length, padded on the right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from src.core.task import MicroBatch
from src.objectives.padding import pad, split_by_length, tokens_and_padding, width_of


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 45))
def test_every_example_is_in_one_part_and_parts_are_sorted_by_length(lengths, size):
    parts = split_by_length(lengths, size)
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    assert all(len(part) == size for part in parts[:-1])
    assert 1 <= len(parts[-1]) <= size
    in_order = [lengths[i] for part in parts for i in part]
    assert in_order == sorted(lengths)


def test_examples_of_one_length_keep_their_order():
    assert split_by_length([3, 3, 3, 3, 3], 2) == [[0, 1], [2, 3], [4]]


def test_a_micro_batch_larger_than_the_batch_is_the_batch():
    assert split_by_length([5, 2, 9], 16) == [[1, 0, 2]]


def rounded(length):
    return 8 * ((length + 7) // 8)


def cost_of(parts, lengths, overhead):
    return sum(len(part) * rounded(max(lengths[i] for i in part)) + overhead for part in parts)


def cheapest(lengths, most, overhead):
    """Of all ways to cut the sorted lengths into parts of 4, 8, ... and a rest, by trying them."""
    if not lengths:
        return 0
    whole = [len(lengths)] if len(lengths) <= most else []
    regular = [s for s in range(1, most + 1) if s % min(4, most) == 0 or s == most]
    return min(
        size * rounded(lengths[-1]) + overhead + cheapest(lengths[:-size], most, overhead)
        for size in {*whole, *(s for s in regular if s <= len(lengths))}
    )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 9), st.integers(0, 100))
def test_with_an_overhead_no_other_split_costs_less(lengths, size, overhead):
    parts = split_by_length(lengths, size, overhead)
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    assert all(1 <= len(part) <= size for part in parts)
    assert cost_of(parts, lengths, overhead) == cheapest(sorted(lengths), size, overhead)


def test_a_part_is_made_where_it_saves_more_than_it_costs():
    lengths = [10] * 4 + [50] * 4
    assert split_by_length(lengths, 8, 4 * (56 - 16) - 1) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert split_by_length(lengths, 8, 4 * (56 - 16) + 1) == [list(range(8))]


@pytest.mark.parametrize(
    ("length", "overhead", "most", "width"),
    [(5, None, None, 5), (5, 0, None, 8), (8, 0, 512, 8), (9, 0, 12, 12), (13, 0, 12, 13)],
)
def test_a_part_is_as_wide_as_its_longest_or_the_next_multiple_the_body_takes(
    length, overhead, most, width
):
    assert width_of([np.zeros(3), np.zeros(length)], overhead, most) == width


def test_tokens_and_padding_are_told_apart():
    inputs = [pad([np.array([7, 8, 9]), np.array([5])], 0), pad([np.array([1])], 0)]
    parts = [MicroBatch(values, units=1, examples=len(values["input_ids"])) for values in inputs]
    assert tokens_and_padding(parts) == (5, 2)


@pytest.mark.parametrize("pad_id", [0, 1])
def test_examples_are_padded_on_the_right_to_the_longest_of_them(pad_id):
    padded = pad([np.array([7, 8, 9]), np.array([5])], pad_id)
    assert padded["input_ids"].tolist() == [[7, 8, 9], [5, pad_id, pad_id]]
    assert padded["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert padded["input_ids"].dtype == padded["attention_mask"].dtype == torch.int64


def test_an_id_that_equals_the_padding_is_still_attended_to():
    assert pad([np.array([0, 0]), np.array([3])], 0)["attention_mask"].tolist() == [[1, 1], [1, 0]]
