"""Outputs of composed objectives: relations of segments, and TF-IDF weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.composed.objective import Composed
from tartan.objectives.composed.output import (
    NextSentence,
    SentenceOrder,
    TfIdf,
    split_segments,
)
from tartan.objectives.composed.representation import Bidirectional
from tartan.objectives.composed.transform import Unchanged
from tartan.objectives.masked_lm import Vocabulary

TINY = TinyEncoder(hidden_size=16, layers=2, dropout=0.0).load()
VOCABULARY = Vocabulary.of(TINY, "a test")
CLS, SEP = TINY.tokenizer.cls_token_id, TINY.tokenizer.sep_token_id
STOP = TINY.tokenizer.get_vocab()["."]


def text(*tokens):
    """Return a text of these tokens between the special ones."""
    return {"input_ids": [CLS, *tokens, SEP]}


def objective(output):
    return Composed(Unchanged(), Bidirectional(), output)


def batch(output, rows):
    """Return the only micro-batch of the rows, in which the shortest texts come first."""
    collate = objective(output).collate(TINY, 1000)
    (part,) = collate(rows, np.random.default_rng(0)).micro_batches
    return part


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
def test_a_prediction_is_read_at_the_first_token_and_the_last_does_not_tell_the_relation(output):
    lengths = np.random.default_rng(0).integers(4, 20, 60)
    rows = [text(50), *(text(*range(100, 100 + length), STOP) for length in lengths), text()]
    part = batch(output, rows)
    width = part.inputs["input_ids"].shape[1]
    assert part.units == 60  # texts of one token and none have no relation
    assert (part.inputs["positions"] % width == 0).all()
    assert objective(output).owners(part.inputs).tolist() == list(range(2, 62))
    assert len(set(part.inputs["targets"].tolist())) == 2
    assert all(segments_of(part, index)[1][-1] != STOP for index in range(2, 62))
    assert width <= 8 * -(-max(lengths + 3) // 8)  # no text is longer than before


@pytest.mark.parametrize(
    ("tokens", "first"),
    [
        ([150, 151, 152, 153, 154], [150, 151]),
        ([150, STOP, 152, 153, 154, STOP, 156, 157], [150, STOP]),  # both as near: the first
        ([150, 151, 152, STOP], [150, 151]),  # the end of the text is none of its first part
    ],
)
def test_a_text_is_split_at_the_sentence_nearest_to_its_middle(tokens, first):
    found = split_segments(text(*tokens), VOCABULARY)
    assert [part.tolist() for part in found] == [first, tokens[len(first) :]]


def drawn(count, seed=0):
    rng = np.random.default_rng(seed)
    return [text(*rng.integers(50, 70, rng.integers(4, 15)).tolist()) for _ in range(count)]


def test_the_targets_are_logarithms_of_scikit_learns_weights():
    rows = drawn(30)
    vectoriser = TfidfVectorizer(analyzer=lambda row: row["input_ids"], norm=None)
    expected = vectoriser.fit_transform(rows).toarray()
    column = vectoriser.vocabulary_
    output = TfIdf().fit(rows, VOCABULARY)
    for number, row in enumerate(rows):
        tokens = np.asarray(row["input_ids"])
        positions, weights = output.targets(row, tokens, np.ones(len(tokens), dtype=bool))
        assert positions.tolist() == list(range(len(tokens)))
        own = [np.log1p(expected[number, column[token]]) for token in tokens.tolist()]
        np.testing.assert_allclose(weights, own, rtol=1e-6)
