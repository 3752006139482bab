"""The user's own task: files of several formats, pairs, splits, and data sets of the Hub."""

from __future__ import annotations

import csv
import hashlib
import json

import datasets
import pytest

from tartan.data.file_task import FileTask
from tartan.data.text_auxiliary import training_texts
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError

SPLITS = ("train", "dev", "test")


def as_csv(path, rows, columns=("text", "label"), separator=","):
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([columns, *rows])
    return str(path)


def rows_of(labels, count=10, start=0):
    return [(f"text {i} {label}", label) for i in range(start, start + count) for label in labels]


def write(path, examples):
    lines = [json.dumps({"text": text, "label": label}) for text, label in examples]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def own(**options):
    return FileTask("own", "macro_f1", 16, **options)


def task_of(folder, *examples):
    files = zip(SPLITS, examples, strict=True)
    return own(**{split: str(write(folder / f"{split}.jsonl", rows)) for split, rows in files})


def sizes(task):
    return [len(getattr(task, split)) for split in SPLITS]


TRAIN = [("a", "Zoo"), ("b\u2028c\x85", "apple"), ("c", "Zoo"), ("d", "mid")]


def test_labels_are_those_of_train_sorted_and_texts_unseen_that_train_has_not(tmp_path):
    dev = [("a", "Zoo"), ("x", "apple")]
    test = [("y", "mid"), ("b\u2028c\x85", "Zoo"), ("z", "apple")]
    task = task_of(tmp_path, TRAIN, dev, test).load()
    assert task.labels == ("Zoo", "apple", "mid")
    assert task.label_counts == (2, 1, 1)
    assert task.train.texts == [text for text, _ in TRAIN]
    assert (task.train.labels, task.test.labels) == ([0, 1, 0, 2], [2, 0, 1])
    assert task.train.unseen == [False] * 4
    assert (task.dev.unseen, task.test.unseen) == ([False, True], [True, False, True])
    digest = hashlib.sha256((tmp_path / "dev.jsonl").read_bytes()).hexdigest()
    assert task.fingerprints["dev"] == digest


def test_rows_without_a_label_are_unlabelled_text_where_that_is_asked_for(tmp_path):
    rows = [*rows_of("AB"), ("no label", ""), ("none either", " ")]
    train = as_csv(tmp_path / "labels.csv", rows)
    with pytest.raises(UserError, match=r"line 22: .* empty .*empty_label"):
        own(train=train).load()
    task = own(train=train, empty_label="unlabelled").load()
    assert sizes(task) == [12, 4, 4]
    assert task.labels == ("A", "B")
    assert set(training_texts(task).texts["text"]) == {*task.train.texts, "no label", "none either"}
    dev = as_csv(tmp_path / "dev.csv", [("no label", ""), ("b", "A")])
    with pytest.raises(UserError, match=r"dev.csv, line 2: .* is empty or missing"):
        own(train=train, dev=dev, empty_label="unlabelled").load()


def test_other_columns_of_the_same_file_have_other_fingerprints(tmp_path):
    rows = [(a, b, a[::-1]) for a, b in rows_of("AB")]
    train = as_csv(tmp_path / "t.csv", rows, ("text", "label", "other"))
    options = ({}, {"text": "other"}, {"text_pair": "other"}, {"text": "text"})
    digests = [own(train=train, **named).load().digest() for named in options]
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]


@pytest.mark.parametrize("column", ["split", "Split"])
def test_a_column_called_split_makes_the_splits(column, tmp_path, caplog):
    names = ["train"] * 8 + ["validation"] * 2 + ["Test"] * 3
    rows = [(f"text {i}", "AB"[i % 2], name) for i, name in enumerate(names)]
    train = as_csv(tmp_path / "t.csv", rows, ("review", "label", column))
    task = own(train=train).load()
    assert sizes(task) == [8, 2, 3]
    assert task.test.texts == ["text 10", "text 11", "text 12"]
    assert f"the column {column!r} says which rows are ['dev', 'test', 'train']" in caplog.text
    assert "texts are read from column 'review', labels from 'label'" in caplog.text
    as_csv(tmp_path / "t.csv", [(*row[:2], "x") for row in rows], ("text", "label", column))
    assert own(train=train).load().rows  # of other values it says nothing
    as_csv(tmp_path / "t.csv", [*rows, ("text", "A", "held out")], ("text", "label", column))
    with pytest.raises(UserError, match=rf"the column '{column}' names no split: \['held out'\]"):
        own(train=train).load()


def test_several_training_files_are_one_table(tmp_path):
    files = [
        as_csv(tmp_path / "a.csv", rows_of("AB")),
        as_csv(tmp_path / "b.tsv", rows_of("AB", start=50), separator="\t"),
    ]
    task = own(train=files).load()
    assert sizes(task) == [24, 8, 8]
    assert [example.number for _, example in task.rows] == list(range(1, 41))
    as_csv(tmp_path / "b.tsv", [("a text", "")], separator="\t")
    with pytest.raises(UserError, match=r"b\.tsv, line 2: the column 'label' is empty"):
        own(train=files).load()


PAIRS = [
    ("a b c", "x", "A"),
    ("a b c", "y", "B"),
    ("a", "b c d e f g h i j k l m n o p q", "A"),
    ("a b c d e f g h", "i j k l m n o p", "B"),
]


@pytest.fixture
def pairs(tmp_path):
    columns = ("text", "second", "label")
    train = as_csv(tmp_path / "train.csv", PAIRS, columns)
    test = as_csv(tmp_path / "test.csv", [("a b c", "x", "A"), ("a b c", "z", "B")], columns)
    return own(train=train, dev=test, test=test, text_pair="second").load()


def test_a_pair_is_unseen_unless_train_has_both_its_texts(pairs):
    assert pairs.train.pairs == [second for _, second, _ in PAIRS]
    assert pairs.test.unseen == [False, True]


@pytest.mark.parametrize("max_length", [8, 16, 64])
def test_pairs_have_the_tokenizers_own_form_and_the_longer_text_is_cut(pairs, max_length, tmp_path):
    object.__setattr__(pairs.source, "max_length", max_length)
    tokenizer = letter_pair_tokenizer()
    splits = pairs.splits(TinyEncoder().load(), tmp_path / "cache")
    for row, (first, second, _) in zip(splits.train, PAIRS, strict=True):
        whole = tokenizer(first, second, truncation="longest_first", max_length=max_length)
        assert row["input_ids"] == whole["input_ids"]
        assert row["token_type_ids"] == whole["token_type_ids"]
    assert splits.train["token_type_ids"][0] == [0, 0, 0, 0, 0, 1, 1]


@pytest.fixture
def hub(tmp_path):
    """A folder that `datasets` reads as it reads the Hub's."""

    def call(kind, **splits):
        folder = tmp_path / "reviews"
        (folder / "data").mkdir(parents=True)
        features = datasets.Features({"text": datasets.Value("string"), "label": kind})
        for split, rows in splits.items():
            columns = {"text": [t for t, _ in rows], "label": [label for _, label in rows]}
            part = datasets.Dataset.from_dict(columns, features=features)
            part.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
        return {"hub": str(folder), "cache_dir": str(tmp_path / "cache")}

    return call


def test_a_data_sets_splits_are_found_and_those_it_lacks_are_held_out(hub):
    parts = {"train": rows_of("AB"), "validation": rows_of("AB", 2, start=90)}
    options = hub(datasets.Value("string"), **parts)
    task = own(**options).load()
    assert sizes(task) == [16, 4, 4]
    assert len(own(**options, train="validation", dev="train", test="train").load().dev) == 20
    with pytest.raises(UserError, match=r"task.dev=valid: .* has only \["):
        own(**options, dev="valid").load()


def test_a_test_split_without_labels_is_held_out_instead(hub):
    parts = {"train": [(f"a {i}", i % 2) for i in range(20)], "test": [("b", -1), ("c", -1)]}
    options = hub(datasets.ClassLabel(names=["no", "yes"]), **parts)
    task = own(**options).load()
    assert (len(task.test), task.labels) == (4, ("no", "yes"))
    with pytest.raises(UserError, match=r"test, row 1: the column 'label' is empty"):
        own(**options, test="test").load()
