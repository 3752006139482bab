"""Splitting a batch of texts into packed or padded parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.classification import Classification
from tartan.objectives.layout import (
    ROW_MULTIPLE,
    Layout,
    pad,
    padded_width,
    spans,
    split_by_length,
    split_by_tokens,
)
from tartan.objectives.masked_lm import MaskedLM

LENGTHS = [3, 30, 1, 12, 12, 7]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 45))
def test_every_example_is_in_one_part_and_parts_are_sorted_by_length(lengths, size):
    parts = split_by_length(lengths, size)
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    assert all(len(part) == size for part in parts[:-1])
    assert 1 <= len(parts[-1]) <= size
    in_order = [lengths[i] for part in parts for i in part]
    assert in_order == sorted(lengths)


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 9), st.integers(0, 100)
)
def test_a_part_ends_where_its_padding_would_cost_more_than_another_part(
    lengths, size, max_padding
):
    parts = split_by_length(lengths, size, max_padding)
    assert [i for part in parts for i in part] == split_by_length(lengths, 99)[0]

    def padding(part):
        return sum(max(lengths[i] for i in part) - lengths[i] for i in part)

    for part in parts:
        assert 1 <= len(part) <= size
        assert padding(part) <= max_padding
    for shorter, longer in itertools.pairwise(parts):
        assert len(longer) == size or padding([shorter[-1], *longer]) > max_padding


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 45))
def test_packed_parts_hold_no_more_tokens_than_padded_ones_can(lengths, size):
    parts = split_by_tokens(lengths, size)
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    most = size * max(1, *lengths)
    assert all(part and sum(lengths[i] for i in part) <= most for part in parts)
    in_order = [lengths[i] for part in parts for i in part]
    assert in_order == sorted(lengths)


@pytest.fixture
def texts() -> list[np.ndarray]:
    return [np.arange(length) + 10 * place for place, length in enumerate(LENGTHS)]


@pytest.mark.parametrize("size", [99, 1])
def test_a_packed_row_holds_its_texts_one_after_another(texts, size):
    layout = Layout(pad_id=0, micro_batch_size=size, packed=True)
    rows = [{"token_type_ids": [place % 2] * len(ids)} for place, ids in enumerate(texts)]
    parts = list(layout.parts(rows, texts))
    assert len(parts) == (1 if size == 99 else 3)
    for members, inputs in parts:
        assert {tuple(inputs[n].shape) for n in inputs if "lengths" not in n} == {
            (1, inputs["input_ids"].shape[1])
        }
        assert inputs["input_ids"].shape[1] % ROW_MULTIPLE == 0
        assert inputs["lengths"].tolist() == [LENGTHS[i] for i in members]
        found, lengths = spans(inputs)
        for place, start, length in zip(members, found, lengths, strict=True):
            own = slice(int(start), int(start + length))
            assert inputs["input_ids"][0, own].tolist() == texts[place].tolist()
            assert inputs["position_ids"][0, own].tolist() == list(range(length))
            assert set(inputs["token_type_ids"][0, own].tolist()) == {place % 2}


def test_position_ids_are_those_of_roberta():
    """Tokens that equal the padding token have its position id, and are not counted."""
    layout = Layout(pad_id=1, micro_batch_size=9, packed=True, first_position=2)
    ((_, inputs),) = layout.parts([{}, {}], [np.array([5, 1, 6]), np.array([7, 8])])
    assert inputs["input_ids"][0, :5].tolist() == [7, 8, 5, 1, 6]
    assert inputs["position_ids"][0, :5].tolist() == [2, 3, 2, 1, 3]
    ((_, inputs),) = Layout(0, 9, packed=True).parts(
        [{}, {}], [np.array([4, 5]), np.array([], int)]
    )
    assert inputs["lengths"].tolist() == [1, 2]  # a text without tokens is a padding token
    assert inputs["input_ids"][0, :3].tolist() == [0, 4, 5]


@pytest.mark.parametrize("objective", [Classification(3, dropout=0.0), MaskedLM()])
@pytest.mark.parametrize("size", [99, 2])
def test_losses_are_those_of_a_padded_batch(objective, size):
    """The losses are compared text by text, in whatever order the parts have them."""
    encoder = TinyEncoder(hidden_size=8, dropout=0.0).load()
    rng = np.random.default_rng(0)
    rows = [
        {"input_ids": [2, *rng.integers(5, 700, length).tolist(), 3], "label": length % 3}
        for length in LENGTHS
    ]
    torch.manual_seed(0)
    head = objective.new_head(encoder)
    found = []
    for packed in (False, True):
        collate = objective.collate(encoder, size, packed=packed)
        batch = collate(rows, np.random.default_rng(1))
        assert batch.tokens == sum(LENGTHS) + 2 * len(LENGTHS)
        own = []
        for part in batch.micro_batches:
            inputs = part.inputs
            losses = objective.losses(
                encoder.body,
                head,
                objective.features(encoder.body, inputs),
                objective.targets(inputs),
            )
            starts = spans(inputs)[0]
            places = inputs.get("positions", starts)  # of each unit
            owners = torch.bucketize(places, starts, right=True) - 1
            texts = inputs["input_ids"].flatten()[starts + 1]  # of each, its first word
            own += list(zip(texts[owners].tolist(), losses.tolist(), strict=True))
        found.append(sorted(own))
    assert len(found[0]) == len(found[1]) == batch.units
    for (text, loss), (other, expected) in zip(*reversed(found), strict=True):
        assert text == other
        assert loss == pytest.approx(expected, abs=1e-5)


def test_widths_are_multiples_of_8_up_to_the_bodys_positions_and_padding_is_told_by_its_mask():
    for length, most, width in [(5, None, 8), (8, 512, 8), (9, 12, 12), (13, 12, 13)]:
        assert padded_width([np.zeros(3), np.zeros(length)], most) == width
    padded = pad([np.array([7, 1, 9]), np.array([5])], 1)
    assert padded["input_ids"].tolist() == [[7, 1, 9], [5, 1, 1]]
    assert padded["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
