"""Texts that a program hands over itself are checked like those in files."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    FNetConfig,
    FNetModel,
    RobertaConfig,
    RobertaModel,
)

from tartan.data.given import auxiliary_of, encoder_of, table_of
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        (datasets.Dataset.from_dict({"text": [1, 2]}), None, "column 'text' holds int64, not text"),
        (datasets.Dataset.from_dict({"a": ["x"]}), None, r"no column 'text', only \['a'\]"),
        (["fine", "half \ud800"], None, "half of a surrogate pair"),
        (
            pd.DataFrame({"text": ["x", 3]}),
            None,
            "^dapt, row 2: the column 'text' is no text but int",
        ),
        ([__file__, __file__], None, "^auxiliary dapt is a list of files; give a folder"),
        ([], None, "holds no texts"),
        (MaskedLM(), None, "must be 'task', a path, texts or a data set: MaskedLM"),
        (TextAuxiliary(objective=MaskedLM()), None, r"names no text; give it path=\.\.\."),
    ],
)
def test_what_is_no_text_is_one_line(given, column, message):
    with pytest.raises(UserError, match=message) as caught:
        auxiliary_of(given, "dapt", column, 1)
    assert "dapt" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"text": ["one", np.nan], "unused": ["x", 3]}),
        pd.Series(["one", None], dtype="string"),
        [{"text": "one"}, {"text": None}],
        ["one", None],
    ],
    ids=["frame", "column", "rows", "texts"],
)
def test_a_missing_text_is_blank(given):
    corpus = auxiliary_of(given, "dapt", None, 1).corpus
    assert corpus.texts.to_dict() == {"text": ["one", ""]}
    assert corpus.fingerprint == auxiliary_of(["one", ""], "dapt", None, 1).corpus.fingerprint


def test_a_data_frame_is_a_table():
    rows = [{"text": "one", "label": 1}, {"text": "two", "label": 0}]
    found = table_of(pd.DataFrame(rows), "train")
    assert [row.values for row in found.rows()] == rows
    assert found.fingerprint == table_of(rows, "train").fingerprint


def test_a_column_that_is_not_read_may_hold_anything():
    row = {"text": "a", "label": "b", "meta": {1: 2, "a": 3, ("x", "y"): object}}
    found = table_of([row], "train").fingerprint
    assert found == table_of([dict(reversed(row.items()))], "train").fingerprint
    assert found != table_of([row | {"text": "c"}], "train").fingerprint


def test_equal_data_sets_have_equal_fingerprints():
    """Also after a `map` with a function that cannot be pickled, where `datasets` draws one."""

    class Odd:
        def __reduce__(self):
            raise TypeError

    odd = Odd()

    def mapped(ending):
        rows = datasets.Dataset.from_dict({"text": ["x", "y", "z"], "label": ["a", "b", "a"]})
        return rows.map(lambda row: {"text": row["text"] + ending, "odd": odd is None})

    first, same, other = mapped("!"), mapped("!"), mapped("?")
    assert first._fingerprint != same._fingerprint
    prints = [table_of(given, "train").fingerprint for given in (first, same, other)]
    assert prints[0] == prints[1] != prints[2]
    texts = [auxiliary_of(given, "dapt", None, 1).corpus for given in (first, same, other)]
    assert texts[0].fingerprint == texts[1].fingerprint != texts[2].fingerprint
    part = first.select(range(1, 3))
    again = datasets.Dataset.from_list(part.to_list(), features=part.features)
    assert table_of(part, "train").fingerprint == table_of(again, "train").fingerprint


TOKENS = len(letter_pair_tokenizer())


def roberta(**options):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return RobertaModel(RobertaConfig(**sizes, intermediate_size=16, vocab_size=TOKENS, **options))


def bert(**options):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return BertModel(BertConfig(**sizes, intermediate_size=16, **{"vocab_size": TOKENS, **options}))


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ((bert().double(), letter_pair_tokenizer()), r"of type torch.float64"),
        ((bert(vocab_size=20), letter_pair_tokenizer()), "its model embeds only 20"),
        ((roberta(pad_token_id=None), letter_pair_tokenizer()), "another pad_token_id"),
        (
            (
                FNetModel(FNetConfig(hidden_size=16, num_hidden_layers=1, vocab_size=TOKENS)),
                letter_pair_tokenizer(),
            ),
            r"\(fnet\) reads padding, so that its states depend on the other texts",
        ),
        (torch.nn.Linear(2, 2), r"must be \(model, tokenizer\), got Linear"),
    ],
)
def test_an_encoder_that_cannot_be_trained_is_one_line(encoder, message):
    with pytest.raises(UserError, match=message):
        encoder_of(encoder)


def test_an_objective_of_ones_own_reads_texts_in_any_form():
    objective = MaskedLM(probability=0.5)
    for given in (["one", "two"], pd.Series(["one", "two"])):
        found = auxiliary_of((objective, given), "mine", None, "all")
        assert found.objective is objective
        assert list(found.corpus.texts["text"]) == ["one", "two"]
    assert auxiliary_of((objective, "task"), "mine", None, "all").text == "task"
    assert auxiliary_of((objective, "texts/"), "mine", None, "all").path == "texts/"
