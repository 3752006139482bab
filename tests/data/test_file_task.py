"""The user's own task: files of several formats, pairs, data sets, and what is said of them."""

from __future__ import annotations

import csv
import json
import logging

import datasets
import pytest

from tartan.data.file_task import FileTask
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError

OWN = {"name": "own", "metric": "macro_f1", "max_length": 16}


def as_csv(path, rows, columns=("text", "label"), separator=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerows([columns, *rows])
    return str(path)


def rows_of(labels, count=10, start=0):
    return [(f"text {i} {label}", label) for i in range(start, start + count) for label in labels]


@pytest.fixture
def said(caplog):
    """The warnings of a call's beginning, by the task itself."""

    def call(function, *arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            result = function(*arguments)
        return result, [r.getMessage() for r in caplog.records if "own: " in r.getMessage()]

    return call


def test_one_file_of_labels_is_enough(tmp_path, said):
    train = as_csv(tmp_path / "labels.csv", rows_of("AB"))
    task, warnings = said(FileTask(train=train, **OWN).load)
    assert [len(part) for part in (task.train, task.dev, task.test)] == [12, 4, 4]
    assert task.label_counts == (6, 6)
    assert warnings == []


def test_rows_without_a_label_are_unlabelled_text_where_that_is_asked_for(tmp_path, said):
    rows = [*rows_of("AB"), ("no label", ""), ("none either", " ")]
    train = as_csv(tmp_path / "labels.csv", rows)
    with pytest.raises(UserError, match=r"line 22: .* empty .*empty_label=unlabelled"):
        FileTask(train=train, **OWN).load()
    task, warnings = said(FileTask(train=train, empty_label="unlabelled", **OWN).load)
    assert warnings == []
    assert [len(part) for part in (task.train, task.dev, task.test)] == [12, 4, 4]
    assert task.labels == ("A", "B")
    assert set(task.own_texts["text"]) == {*task.train.texts, "no label", "none either"}
    dev = as_csv(tmp_path / "dev.csv", [("no label", ""), ("b", "A")])
    with pytest.raises(UserError, match=r"dev.csv, line 2: .* is empty or missing"):
        FileTask(train=train, dev=dev, empty_label="unlabelled", **OWN).load()
    bare = as_csv(tmp_path / "bare.csv", [("a", ""), ("b", "")])
    with pytest.raises(UserError, match="holds no labelled examples"):
        FileTask(train=bare, empty_label="unlabelled", text="text", label="label", **OWN).load()


def test_files_of_several_formats_make_one_task(tmp_path):
    train = as_csv(tmp_path / "train.csv", rows_of([10, 9]))
    dev = as_csv(tmp_path / "dev.tsv", rows_of([9, 10], 2, start=50), separator="\t")
    test = tmp_path / "test.jsonl"
    test.write_text(json.dumps({"text": "text 0 9", "label": 9}) + "\n")
    task = FileTask(train=train, dev=dev, test=str(test), **OWN).load()
    assert task.labels == ("9", "10")
    assert (task.dev.labels, task.test.labels) == ([0, 1, 0, 1], [0])
    assert (task.dev.unseen, task.test.unseen) == ([True] * 4, [False])
    assert not task.rows
    assert "split" not in task.notes


def test_other_columns_of_the_same_file_have_other_fingerprints(tmp_path):
    rows = [(a, b, a[::-1]) for a, b in rows_of("AB")]
    train = as_csv(tmp_path / "t.csv", rows, ("text", "label", "other"))
    options = ({}, {"text": "other"}, {"text_pair": "other"}, {"text": "text"})
    digests = [FileTask(train=train, **OWN, **named).load().digest() for named in options]
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]


def test_columns_that_were_found_are_said(tmp_path, said):
    train = as_csv(tmp_path / "t.csv", rows_of("AB"), ("Review", "Kind"), separator=";")
    _, warnings = said(FileTask(train=train, label="Kind", **OWN).load)
    assert warnings == [
        f"task own: {train}: texts are read from column 'Review', labels from 'Kind'"
    ]


def test_a_column_called_split_makes_the_splits(tmp_path, said):
    names = ["train"] * 8 + ["validation"] * 2 + ["Test"] * 3
    rows = [(f"text {i}", "AB"[i % 2], name) for i, name in enumerate(names)]
    train = as_csv(tmp_path / "t.csv", rows, ("text", "label", "split"))
    task, warnings = said(FileTask(train=train, **OWN).load)
    assert [len(part) for part in (task.train, task.dev, task.test)] == [8, 2, 3]
    assert task.test.texts == ["text 10", "text 11", "text 12"]
    assert not task.rows
    assert warnings[0] == (
        f"task own: {train}: the column 'split' says which rows are dev, test, train"
    )
    as_csv(tmp_path / "t.csv", [(*row[:2], "x") for row in rows], ("text", "label", "split"))
    other = FileTask(train=train, text="text", **OWN).load()  # of other values it says nothing
    assert other.rows


def test_several_training_files_are_one_table(tmp_path):
    files = [
        as_csv(tmp_path / "a.csv", rows_of("AB")),
        as_csv(tmp_path / "b.tsv", rows_of("AB", start=50), separator="\t"),
    ]
    task = FileTask(train=files, **OWN).load()
    assert [len(part) for part in (task.train, task.dev, task.test)] == [24, 8, 8]
    numbers = [example.number for _, example in task.rows]
    assert numbers == list(range(1, 41))
    as_csv(tmp_path / "b.tsv", [("a text", "")], separator="\t")
    with pytest.raises(UserError, match=r"b\.tsv, line 2: the column 'label' is empty"):
        FileTask(train=files, **OWN).load()


PAIRS = [
    ("a b c", "x", "A"),
    ("a b c", "y", "B"),
    ("a", "b c d e f g h i j k l m n o p q", "A"),
    ("a b c d e f g h", "i j k l m n o p", "B"),
]


@pytest.fixture
def pairs(tmp_path):
    rows = [(f"{a}", f"{b}", label) for a, b, label in PAIRS]
    train = as_csv(tmp_path / "train.csv", rows, ("text", "second", "label"))
    test = as_csv(
        tmp_path / "test.csv",
        [("a b c", "x", "A"), ("a b c", "z", "B")],
        ("text", "second", "label"),
    )
    return FileTask(train=train, dev=test, test=test, text_pair="second", **OWN).load()


def test_a_pair_is_unseen_unless_train_has_both_its_texts(pairs):
    assert pairs.train.pairs == [second for _, second, _ in PAIRS]
    assert pairs.test.unseen == [False, True]


@pytest.mark.parametrize("max_length", [8, 16, 64])
def test_pairs_have_the_tokenizers_own_form_and_the_longer_text_is_cut(
    pairs, max_length, tmp_path, said
):
    object.__setattr__(pairs.source, "max_length", max_length)
    tokenizer = letter_pair_tokenizer()
    splits, warnings = said(pairs.splits, TinyEncoder().load(), tmp_path / "cache")
    for row, (first, second, _) in zip(splits.train, PAIRS, strict=True):
        whole = tokenizer(first, second, truncation="longest_first", max_length=max_length)
        assert row["input_ids"] == whole["input_ids"]
        assert row["token_type_ids"] == whole["token_type_ids"]
    assert splits.train["token_type_ids"][0] == [0, 0, 0, 0, 0, 1, 1]
    lengths = [len(tokenizer(first, second)["input_ids"]) for first, second, _ in PAIRS]
    full = sum(length >= max_length for length in lengths)
    assert [f": {full} of {len(PAIRS)} texts in train reach" in line for line in warnings[:1]] == [
        True
    ] * bool(full)


@pytest.fixture
def hub(tmp_path):
    """A folder that `datasets` reads as it reads the Hub's."""

    def call(**splits):
        folder = tmp_path / "reviews"
        (folder / "data").mkdir(parents=True)
        for split, rows in splits.items():
            columns = {"text": [t for t, _ in rows], "label": [label for _, label in rows]}
            part = datasets.Dataset.from_dict(columns)
            part.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
        return {"hub": str(folder), "cache_dir": str(tmp_path / "cache"), **OWN}

    return call


def test_a_data_sets_splits_are_found_and_those_it_lacks_are_held_out(hub):
    options = hub(train=rows_of("AB"), validation=rows_of("AB", 2, start=90))
    task = FileTask(**options).load()
    assert [len(part) for part in (task.train, task.dev, task.test)] == [16, 4, 4]
    assert task.notes["split"]["source"].endswith("reviews, train")
    other = FileTask(**options, train="validation", dev="train", test="train").load()
    assert len(other.dev) == 20
    with pytest.raises(UserError, match=r"no split 'valid'; .* task.dev=SPLIT"):
        FileTask(**options, dev="valid").load()


def test_a_test_split_without_labels_is_held_out_instead(tmp_path):
    folder = tmp_path / "reviews"
    (folder / "data").mkdir(parents=True)
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    for split, labels in (("train", [0, 1] * 10), ("test", [-1] * 5)):
        columns = {"text": [f"{split} {i}" for i in range(len(labels))], "label": labels}
        part = datasets.Dataset.from_dict(columns, features=features)
        part.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    own = {"hub": str(folder), "cache_dir": str(tmp_path / "cache"), **OWN}
    task = FileTask(**own).load()
    assert (len(task.test), task.labels) == (4, ("no", "yes"))
    with pytest.raises(UserError, match=r"test, row 1: the column 'label' is empty"):
        FileTask(**own, test="test").load()
