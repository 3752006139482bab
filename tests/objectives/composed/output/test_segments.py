"""Splitting texts into two segments, and joining segments."""

from __future__ import annotations

import numpy as np
import pytest

from tartan.objectives.composed.output.segments import RELATION, join_segments, split_segments
from tests.objectives.composed.output.batches import CLS, SEP, STOP, VOCABULARY, text


@pytest.mark.parametrize(
    ("tokens", "first"),
    [
        ([150, 151, 152, 153], [150, 151]),
        ([150, 151, 152, 153, 154], [150, 151]),
        ([150, STOP, 152, 153, 154, 155, 156], [150, STOP]),
        ([150, STOP, 152, 153, 154, STOP, 156, 157], [150, STOP]),  # both as near: the first
        ([150, STOP, 152, 153, 154, STOP, 156], [150, STOP]),
        (
            [150, STOP, 152, 153, 154, STOP, 156, 157, 158, 159],
            [150, STOP, 152, 153, 154, STOP],
        ),
        ([150, 151, 152, STOP], [150, 151]),  # the end of the text is none of its first part
    ],
)
def test_a_text_is_split_at_the_sentence_nearest_to_its_middle(tokens, first):
    found = split_segments(text(*tokens), VOCABULARY)
    assert [part.tolist() for part in found] == [first, tokens[len(first) :]]


@pytest.mark.parametrize("tokens", [[], [150]])
def test_a_text_of_one_token_has_no_segments(tokens):
    row = text(*tokens)
    first, second = split_segments(row, VOCABULARY)
    assert len(first) == len(second) == 0
    assert join_segments(row, first, second, 1)[RELATION] == -1


def test_segments_of_a_pair_have_no_separator_of_the_pair():
    row = {"input_ids": [CLS, 150, 151, SEP, 152, 153, SEP], "label": 2}
    first, second = split_segments(row, VOCABULARY)
    assert (first.tolist(), second.tolist()) == ([150, 151], [152, 153])
    again = join_segments(row, first, second, 1)
    assert again["input_ids"].tolist() == [CLS, 150, 151, SEP, 152, SEP]
    assert again["token_type_ids"].tolist() == [0, 0, 0, 0, 1, 1]
    assert (again["label"], again[RELATION]) == (2, 1)


def test_a_joined_text_is_not_longer_than_the_one_that_it_replaces():
    rng = np.random.default_rng(0)
    for _ in range(200):
        row, other = (text(*range(150, 150 + rng.integers(1, 12))) for _ in range(2))
        first, _ = split_segments(row, VOCABULARY)
        _, second = split_segments(other, VOCABULARY)
        made = join_segments(row, first, second, 0)
        assert len(made["input_ids"]) == len(made["token_type_ids"]) <= len(row["input_ids"])
