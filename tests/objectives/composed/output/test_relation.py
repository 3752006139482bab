"""Outputs that predict the order of sentences, and the next sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.objectives.composed.output.next_sentence import NextSentence
from tartan.objectives.composed.output.sentence_order import SentenceOrder
from tests.encoders.bodies import random_body
from tests.objectives.composed.output.batches import CLS, SEP, STOP, TINY, batch, objective, text

# no two texts share a token, and each is as long as the others
TEXTS = [text(*range(100 + 10 * i, 110 + 10 * i)) for i in range(60)]
FIRST, SECOND = slice(0, 5), slice(5, 9)  # of the second, a separator takes one token's place


def segments_of(part, index):
    """Check a text's token types; return the tokens of both segments."""
    held = part.inputs["attention_mask"][index].bool()
    tokens = part.inputs["input_ids"][index][held].tolist()
    between = tokens.index(SEP)
    assert (tokens[0], tokens[-1], tokens.count(SEP)) == (CLS, SEP, 2)
    types = part.inputs["token_type_ids"][index][held].tolist()
    assert types == [0] * (between + 1) + [1] * (len(tokens) - between - 1)
    return tokens[1:between], tokens[between + 1 : -1]


def test_sentence_order_swaps_the_segments_of_half_of_the_texts():
    part = batch(SentenceOrder(), TEXTS)
    swapped = 0
    for index, in_order in enumerate(part.inputs["targets"].tolist()):
        own = TEXTS[index]["input_ids"][1:-1]
        first, second = segments_of(part, index)
        if in_order:
            assert (first, second) == (own[FIRST], own[SECOND])
        else:
            assert (first, second) == (own[5:10], own[:4])
            swapped += 1
    assert 15 < swapped < 45


def test_next_sentence_takes_half_of_the_segments_from_earlier_texts():
    part = batch(NextSentence(), TEXTS)
    foreign = 0
    for index, follows in enumerate(part.inputs["targets"].tolist()):
        own = TEXTS[index]["input_ids"][1:-1]
        first, second = segments_of(part, index)
        assert first == own[FIRST]
        if follows:
            assert second == own[SECOND]
        else:
            others = [TEXTS[other]["input_ids"][1:-1][SECOND] for other in range(index)]
            assert second in others
            foreign += 1
    assert 15 < foreign < 45
    assert part.inputs["targets"][0] == 1


@pytest.mark.parametrize("output", [SentenceOrder(), NextSentence()])
def test_the_last_token_does_not_tell_the_relation(output):
    lengths = np.random.default_rng(0).integers(4, 20, 60)
    rows = [text(*range(100, 100 + length), STOP) for length in lengths]
    part = batch(output, rows)
    targets = part.inputs["targets"].tolist()
    ends = [segments_of(part, index)[1][-1] == STOP for index in range(len(rows))]
    assert len(set(targets)) == 2
    assert not any(ends)


@pytest.mark.parametrize("output", [SentenceOrder(), NextSentence()])
def test_a_prediction_is_read_at_the_first_token(output):
    rows = [text(50), *TEXTS[:4], text()]
    part = batch(output, rows)
    width = part.inputs["input_ids"].shape[1]
    assert part.units == 4  # texts of one token and none have no relation
    assert (part.inputs["positions"] % width == 0).all()
    assert objective(output).owners(part.inputs).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("output", [SentenceOrder(), NextSentence()])
def test_texts_do_not_depend_on_those_after_them(output):
    few, many = batch(output, TEXTS[:7]), batch(output, TEXTS)
    for name in ("input_ids", "token_type_ids", "targets"):
        assert torch.equal(few.inputs[name], many.inputs[name][:7])


@pytest.mark.parametrize("output", [SentenceOrder(), NextSentence()])
def test_a_body_without_token_types_gets_none(output):
    encoder = TextEncoder("distil", random_body("distilbert").eval(), letter_pair_tokenizer())
    collate = objective(output).collate(encoder, 1000)
    (part,) = collate(TEXTS[:4], np.random.default_rng(0)).micro_batches
    assert "token_type_ids" not in part.inputs


@pytest.mark.parametrize("output", [SentenceOrder(), NextSentence()])
def test_the_loss_is_the_cross_entropy_of_two_classes(output):
    head = output.new_head(TINY, classes=7).eval()
    features, targets = torch.randn(5, 16), torch.tensor([0, 1, 1, 0, 1])
    assert head(features).shape == (5, 2)
    expected = F.cross_entropy(head(features), targets, reduction="none")
    assert torch.equal(output.losses(TINY.body, head, features, targets), expected)


@pytest.mark.parametrize("kind", [SentenceOrder, NextSentence])
def test_a_dropout_of_one_is_refused(kind):
    with pytest.raises(UserError, match=r"dropout must be a number in \[0, 1\), got 1"):
        kind(dropout=1.0)
