"""Texts that a program hands over itself are checked like those in files."""

from __future__ import annotations

from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset
from transformers import (
    BertConfig,
    BertModel,
)

from tartan.data.given import auxiliary_of, encoder_of, table_of
from tartan.data.tartan_data import TartanData
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        (datasets.Dataset.from_dict({"text": [1, 2]}), None, "column 'text' holds int64, not text"),
        (datasets.Dataset.from_dict({"a": ["x"]}), None, r"no column 'text', only \['a'\]"),
        (datasets.Dataset.from_dict({"a": ["x"]}), "b", r"no column 'b', only \['a'\]"),
        (["fine", "half \ud800"], None, "half of a surrogate pair"),
        (["fine", 3.5], None, "^dapt, row 2: the column 'text' must be a string, not float"),
        ([{"a": "x"}], None, "no column 'text', only 'a'"),
        (pd.DataFrame({"a": ["x"]}), None, "no column 'text', only 'a'"),
        (
            pd.DataFrame({"text": ["x", 3]}),
            None,
            "^dapt, row 2: the column 'text' must be a string",
        ),
        ([Path("a.txt"), "text"], None, r'is a list of files; .* a pattern \("texts/\*\.txt"\)'),
        ([__file__, __file__], None, "^auxiliary dapt is a list of files; give a folder"),
        ([], None, "holds no texts"),
        ({"a": 1}, None, "must be 'task'"),
        (MaskedLM(), None, r"or \(objective, texts\) .* got MaskedLM"),
        (TextAuxiliary(objective=MaskedLM()), None, r"names no text; give it path=\.\.\."),
    ],
)
def test_what_is_no_text_is_one_line(given, column, message):
    with pytest.raises(UserError, match=message) as caught:
        auxiliary_of(given, "dapt", column, 1)
    assert "dapt" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_the_named_column_is_the_text():
    given = datasets.Dataset.from_dict({"text": ["no"], "body": ["yes"]})
    assert auxiliary_of(given, "dapt", "body", 1).corpus.texts.to_dict() == {"text": ["yes"]}


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"body": ["one", "two"], "n": [1, 2]}),
        pd.DataFrame({"body": ["one", "two"]})["body"],
        [{"body": "one"}, {"body": "two"}],
    ],
    ids=["frame", "column", "rows"],
)
def test_frames_and_rows_are_texts(given):
    texts = auxiliary_of(given, "dapt", "body", 1).corpus.texts
    assert texts.to_dict() == {"text": ["one", "two"]}


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"text": ["one", np.nan], "unused": ["x", 3]}),
        pd.Series(["one", None], dtype="string"),
        pd.Series(["one", np.nan], dtype=object),
        [{"text": "one"}, {"text": None}],
        ["one", None],
    ],
    ids=["frame", "column of strings", "column of objects", "rows", "texts"],
)
def test_a_missing_text_is_blank(given):
    corpus = auxiliary_of(given, "dapt", None, 1).corpus
    assert corpus.texts.to_dict() == {"text": ["one", ""]}
    assert corpus.fingerprint == auxiliary_of(["one", ""], "dapt", None, 1).corpus.fingerprint


def test_texts_as_long_as_no_path_can_be_are_texts():
    texts = ["x" * 10_000, "null \0", ""]
    assert auxiliary_of(texts, "dapt", None, 1).corpus.texts.to_dict() == {"text": texts}


def test_a_loader_part_or_stream_of_a_data_set_keeps_the_labels_names():
    names = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features(text=datasets.Value("string"), label=names)
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": 0}]
    whole = datasets.Dataset.from_list(rows, features=features)
    for given in (
        DataLoader(whole),
        whole.to_iterable_dataset(),
        DataLoader(Subset(whole, [0, 1])),
    ):
        assert [row.values["label"] for row in table_of(given, "train").rows()] == ["yes", "no"]
    (only,) = table_of(Subset(whole, [1]), "train").rows()
    assert only.values == {"text": "b", "label": "no"}
    (only,) = table_of(Subset(Subset(whole, [1, 0]), [1]), "train").rows()
    assert only.values == {"text": "a", "label": "yes"}
    joined = table_of(ConcatDataset([Subset(whole, [1]), whole]), "train").rows()
    assert [row.values["label"] for row in joined] == ["no", "yes", "no"]


def test_a_data_frame_names_no_column_twice():
    frame = pd.DataFrame([["a", "x", "y"]], columns=["text", "label", "label"])
    with pytest.raises(UserError, match=r"^train names the column 'label' twice"):
        table_of(frame, "train")
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(UserError, match=r"^auxiliary dapt names the column 'text' twice"):
        auxiliary_of(twice, "dapt", None, "all")


def test_named_tuples_are_read_by_their_names():
    frame = pd.DataFrame({"label": ["pos"], "text": ["good film"]})
    (row,) = table_of(list(frame.itertuples(index=False)), "train").rows()
    assert row.values == {"label": "pos", "text": "good film"}


@pytest.mark.parametrize("form", ["torch", "arrow", "transform"])
def test_the_format_of_a_data_set_is_not_that_of_its_texts(form):
    texts = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]})
    given = {
        "torch": lambda: texts.with_format("torch", columns=["label"]),
        "arrow": lambda: texts.with_format("arrow"),
        "transform": lambda: texts.with_transform(lambda rows: {"x": rows["label"]}),
    }[form]()
    assert auxiliary_of(given, "dapt", None, "all").corpus.texts["text"][:] == ["a", "b"]


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


def test_the_splits_of_a_data_set_are_given_by_themselves():
    split = datasets.Dataset.from_dict({"text": ["x"], "label": ["a"]})
    with pytest.raises(UserError, match="of the splits train, validation; give each split by"):
        table_of(datasets.DatasetDict(train=split, validation=split), "train")
    stream = split.to_iterable_dataset()
    with pytest.raises(UserError, match="IterableDatasetDict, of the splits train; give each"):
        table_of(datasets.IterableDatasetDict(train=stream), "train")


def test_a_mapping_of_columns_is_no_list_of_rows():
    with pytest.raises(UserError, match=r"^train is one mapping of columns; give datasets\."):
        table_of({"text": ["a", "b"], "label": ["x", "y"]}, "train")


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


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            [{"a": "x", "b": "y"}] * 4,
            {},
            r"train: cannot .* holds the texts; name it: text=COLUMN, .*: text_pair=COLUMN \(",
        ),
        (
            ["a.csv", "b.csv"],
            {},
            r"^train, row 1: .* got 'a\.csv'; a file is given by itself, .*; join several into one",
        ),
        (
            [{"text": "x", "kind": "y"}] * 4,
            {"label": "kin"},
            r"label=kin: .*",
        ),
        (
            [{"text": "x", "label": "a"}, *[{"text": "y", "label": "b"}] * 4],
            {},
            r"1 label .*: 'a' has 1; .*, or name a test file: test=FILE and a dev file: dev=FILE",
        ),
        (
            [{"text": f"{i}", "label": "ab"[i % 2]} for i in range(8)],
            {"dev_share": 0.9},
            r"^test_share=0.2 and dev_share=0.9: of the 8 .* name a dev file: dev=FILE",
        ),
        (
            [{"text": f"{i}", "label": "ab"[i % 2]} for i in range(20)],
            {"max_length": 600},
            "^max_length=600: encoder .* reads at most",
        ),
    ],
)
def test_messages_name_the_arguments_of_a_program(rows, options, message, cache_dir):
    with pytest.raises(UserError, match=message):
        _ = TartanData(rows, encoder="tiny", cache_dir=cache_dir, **options).prepared


def test_rows_of_a_data_frame_without_a_label_are_unlabelled_text(cache_dir):
    frame = pd.DataFrame({"text": [f"t{i}" for i in range(24)], "label": [*"ab" * 10, *[None] * 4]})
    frame.loc[23, "label"] = float("nan")
    options = {"encoder": "tiny", "cache_dir": cache_dir, "auxiliaries": {"tapt": "task"}}
    with pytest.raises(
        UserError,
        match=r"row 21: .* is empty, as in 3 more rows; fill it in, .* \(empty_label=",
    ):
        _ = TartanData(frame, **options).prepared
    found = TartanData(frame, empty_label="unlabelled", **options).prepared
    assert (len(found.splits.train), len(found.rows("tapt"))) == (12, 16)


def test_one_file_for_two_splits_is_warned_of(cache_dir, tmp_path, caplog):
    lines = [f"text {i},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *lines]))
    _ = TartanData(
        tmp_path / "a.csv", test=str(tmp_path / "a.csv"), encoder="tiny", cache_dir=cache_dir
    ).prepared
    said = [record.getMessage() for record in caplog.records]
    assert any("train and test name the same file, so that scores" in line for line in said), said


def test_warnings_name_the_arguments_of_a_program(cache_dir, caplog):
    rows = [{"body": "many words " * 20, "kind": "ab"[i % 2], "text_pair": "x"} for i in range(20)]
    data = TartanData(rows, encoder="tiny", cache_dir=cache_dir, label="kind", max_length=16)
    _ = data.prepared
    said = [record.getMessage() for record in caplog.records]
    assert any("(others: text=COLUMN label=COLUMN)" in line for line in said), said
    assert any("texts were cut at max_length=16: 12 of 12 in train" in line for line in said), said
    assert any("; text_pair=text_pair makes them pairs" in line for line in said), said


TOKENS = len(letter_pair_tokenizer())


def bert(**options):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    words = {"vocab_size": len(letter_pair_tokenizer()), "intermediate_size": 16}
    return BertModel(BertConfig(**{**sizes, **words, **options}))


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ((bert(), "bert-base-uncased"), "the second is a str; give the tokenizer itself"),
        ((bert(),), r"^encoder is a tuple of 1; give encoder=\(model, tokenizer\)"),
        (torch.nn.Linear(2, 2), r"must be \(model, tokenizer\) of Transformers, got Linear"),
    ],
)
def test_an_encoder_that_cannot_be_trained_is_one_line(encoder, message):
    with pytest.raises(UserError, match=message):
        encoder_of(encoder)


def test_rows_of_token_ids_are_one_line(cache_dir):
    ids = torch.utils.data.TensorDataset(torch.zeros(8, 5, dtype=torch.int64), torch.ones(8))
    with pytest.raises(UserError, match=r"^train, row 1: .*text"):
        _ = TartanData(ids, encoder="tiny", cache_dir=cache_dir).prepared


def test_a_label_may_be_an_array_of_one_number():
    rows = [("a", torch.tensor([1])), ("b", np.array([[0]])), ("c", np.float32(1))]
    found = [row.values["label"] for row in table_of(rows, "train").rows()]
    assert found == [1, 0, 1.0]


def test_an_objective_of_ones_own_reads_texts_in_any_form():
    objective = MaskedLM(probability=0.5)
    for given in (["one", "two"], pd.Series(["one", "two"])):
        found = auxiliary_of((objective, given), "mine", None, "all")
        assert found.objective is objective
        assert list(found.corpus.texts["text"]) == ["one", "two"]
    assert auxiliary_of((objective, "task"), "mine", None, "all").text == "task"
    assert auxiliary_of((objective, "texts/"), "mine", None, "all").path == "texts/"
