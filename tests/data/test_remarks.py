"""What is said of texts before training: counted, in one line a kind, nothing where all is well."""

from __future__ import annotations

import json
import logging

import pytest

from tartan.data.file_task import FileTask
from tartan.data.remarks import (
    warn_of_imbalance,
    warn_of_texts,
    warn_of_truncation,
)
from tartan.data.tokenise import Truncation
from tartan.encoders.tiny import TinyEncoder

CLEAN = {
    "train": [("a", "A"), ("b", "B")],
    "dev": [("c", "A"), ("d", "B")],
    "test": [("e", "A"), ("f", "B")],
}


@pytest.fixture
def said(caplog):
    """The warnings of a call."""

    def call(function, *arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tartan.data.remarks"):
            function(*arguments)
        return [record.getMessage() for record in caplog.records]

    return call


def test_nothing_is_said_of_texts_without_oddities(said):
    assert said(warn_of_texts, "toy", CLEAN) == []


def test_texts_that_a_split_repeats_are_counted_once_less_than_they_occur(said):
    train = [("a", "A"), ("a", "A"), ("a", "B"), ("b", "B"), ("b", "B")]
    test = [("e", "A"), ("f", "B"), ("e", "B")]
    assert said(warn_of_texts, "toy", {**CLEAN, "train": train, "test": test}) == [
        "task toy: examples repeat a text of their own split: 3 of 5 in train, 1 of 3 in test"
    ]


def test_texts_that_train_has_too_are_counted(said):
    dev = [("a", "A"), ("d", "B"), ("b", "B")]
    assert said(warn_of_texts, "toy", {**CLEAN, "dev": dev}) == [
        "task toy: texts that train has too: 2 of 3 in dev (metrics are given without them as well)"
    ]


def test_labels_that_dev_or_test_lack_are_named(said):
    splits = {**CLEAN, "dev": [("c", "B")], "test": [("e", "A")]}
    assert said(warn_of_texts, "toy", splits) == [
        "task toy: no examples of some labels of train: 'A' in dev; 'B' in test"
    ]


def test_of_many_labels_some_are_named(said):
    train = [(f"t{i}", f"L{i:02}") for i in range(12)]
    test = [(f"e{i}", label) for i, (_, label) in enumerate(train)]
    splits = {"train": train, "dev": [("d", "L00")], "test": test}
    (message,) = said(warn_of_texts, "toy", splits)
    named = ", ".join(f"'L{i:02}'" for i in range(1, 9))
    assert message == f"task toy: no examples of some labels of train: {named} and 3 more in dev"


def test_cut_texts_are_counted_with_the_share_of_tokens_lost(said):
    cuts = {"train": Truncation(1000, 30, 4000, 100), "dev": Truncation(5, 0, 20, 0)}
    assert said(warn_of_truncation, "toy", "max_length=32", cuts) == [
        "task toy: texts were cut at max_length=32: 30 of 1,000 in train, 2.5% of its tokens lost"
    ]
    assert said(warn_of_truncation, "toy", "max_length=32", {"dev": cuts["dev"]}) == []


def test_a_task_says_it_once_and_again_when_its_tokens_are_cached(said, tmp_path):
    """Six letters and two special tokens fit; of nine letters three are lost."""
    texts = {"train": ["a b c d e f", "a b c d e f g h i"], "dev": ["x", "y"], "test": ["v", "w"]}
    for split, own in texts.items():
        lines = [json.dumps({"text": t, "label": "AB"[i]}) for i, t in enumerate(own)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines))
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in texts}
    task = FileTask(name="toy", metric="macro_f1", max_length=8, **paths)
    expected = [
        "task toy: texts were cut at task.max_length=8: 1 of 2 in train, 20.0% of its tokens lost"
    ]
    for _ in range(2):
        assert said(task.load().splits, TinyEncoder().load(), tmp_path / "cache") == expected


def test_a_task_speaks_of_its_texts_when_it_is_read(said, data_dir):
    paths = {split: str(data_dir / "toy" / f"{split}.jsonl") for split in CLEAN}
    assert said(FileTask(name="toy", metric="macro_f1", max_length=8, **paths).load) == [
        "task toy: texts that train has too: 1 of 22 in dev, 1 of 31 in test "
        "(metrics are given without them as well)"
    ]


def test_labels_that_look_alike_or_stand_for_none_are_told(said):
    train = [("a", "caf\u00e9"), ("b", "cafe\u0301"), ("c", "None"), ("d", "NaN"), ("e", "null")]
    splits = dict.fromkeys(CLEAN, train)
    messages = said(warn_of_texts, "toy", splits)[1:]
    assert messages == [
        "task toy: labels differ in case, spaces, Unicode form or the spelling of a number only: "
        "'cafe\u0301' and 'caf\u00e9'",
        "task toy: labels that may stand for a missing one: 'NaN', 'None', 'null'",
    ]


def test_labels_that_are_one_number_are_told(said):
    labels = ["1", "01", "1.0", "+1", "2", "-1", "10", "1 a", "01 a", "-0", "0"]
    train = [(str(place), label) for place, label in enumerate(labels)]
    splits = dict.fromkeys(CLEAN, train)
    assert said(warn_of_texts, "toy", splits)[1:] == [
        "task toy: labels differ in case, spaces, Unicode form or the spelling of a number only: "
        "'+1' and '01' and '1' and '1.0'; '-0' and '0'"
    ]


def test_each_kind_of_warning_has_its_name(said, caplog):
    train = [(" ", "a"), ("x", "a "), ("x", "nan"), ("y", "a"), ("z", "a"), ("v", "a")]
    said(warn_of_texts, "toy", {"train": train, "dev": [("x", "a")], "test": [("y", "a")]})
    kinds = ["blank", "repeated", "shared", "absent", "alike", "missing"]
    assert [record.kind for record in caplog.records] == kinds
    said(warn_of_imbalance, "toy", ["a", "b"], [9, 1])
    assert [record.kind for record in caplog.records] == ["imbalance"]
    said(warn_of_truncation, "toy", "max_length=8", {"train": Truncation(1, 1, 9, 1)})
    assert [record.kind for record in caplog.records] == ["truncation"]


def test_blank_texts_are_counted(said):
    train = [("", "A"), (" ", "B"), (("a", ""), "A"), (("", ""), "B")]
    assert said(warn_of_texts, "toy", {**CLEAN, "train": train})[0] == (
        "task toy: examples have a blank text: 3 of 4 in train; fill them in, or remove them"
    )
