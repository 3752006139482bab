"""Texts that a program hands over itself are checked like those in files."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import pytest
import torch

from tartan.data.table import table_of
from tartan.data.tartan_data import auxiliary_of, encoder_of
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (datasets.Dataset.from_dict({"text": [1, 2]}), "column 'text' holds int64, not text"),
        (datasets.Dataset.from_dict({"a": ["x"]}), r"no column='text', only \['a'\]"),
        ([__file__, __file__], "^auxiliary dapt is a list of files; give a folder"),
        ([], "holds no texts"),
        (MaskedLM(), "no texts, path or data set: MaskedLM"),
    ],
)
def test_what_is_no_text_is_one_line(given, message):
    with pytest.raises(UserError, match=message):
        auxiliary_of(given, "dapt", None, 1)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"text": ["one", np.nan], "unused": ["x", 3]}),
        pd.Series(["one", None], dtype="string"),
        [{"text": "one", "more": object}, {"text": None}],
        ["one", None],
    ],
    ids=["frame", "column", "rows", "texts"],
)
def test_unlabelled_texts_come_in_several_forms(given):
    corpus = auxiliary_of(given, "dapt", None, 1).corpus
    assert corpus.texts.to_dict() == {"text": ["one", None]}
    assert corpus.fingerprint == auxiliary_of(["one", None], "dapt", None, 1).corpus.fingerprint


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"text": ["one", "two"], "label": [1, 0]}),
        [{"text": "one", "label": np.int64(1)}, {"text": "two", "label": 0}],
        [("one", 1), ("two", 0)],
        iter([("one", 1), ("two", 0)]),
    ],
    ids=["frame", "rows", "tuples", "iterator"],
)
def test_labelled_examples_come_in_several_forms(given):
    rows = [row.values for row in table_of(given, "train").rows()]
    assert rows == [{"text": "one", "label": 1}, {"text": "two", "label": 0}]


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


def test_an_encoder_that_is_no_model_with_a_tokenizer_is_one_line():
    with pytest.raises(UserError, match=r"must be \(model, tokenizer\), got Linear"):
        encoder_of(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("given", [[("one", "a label")], ["one", np.nan], [{"text": 3}]])
def test_texts_that_are_none_are_refused(given):
    with pytest.raises(UserError, match="auxiliary dapt holds no text but"):
        auxiliary_of(given, "dapt", None, 1)


def test_an_objective_of_ones_own_reads_texts_in_any_form():
    objective = MaskedLM(probability=0.5)
    for given in (["one", "two"], pd.Series(["one", "two"])):
        found = auxiliary_of((objective, given), "mine", None, "all")
        assert found.objective is objective
        assert list(found.corpus.texts["text"]) == ["one", "two"]
    assert auxiliary_of((objective, "task"), "mine", None, "all").text == "task"
    assert auxiliary_of((objective, "texts/"), "mine", None, "all").path == "texts/"
