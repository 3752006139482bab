"""Reading the labelled splits: order of labels, unseen texts, pairs, and what is refused."""

from __future__ import annotations

import hashlib
import json

import pytest

from tartan.data.file_task import FileTask
from tartan.errors import UserError


def write(path, examples):
    lines = [json.dumps({"text": text, "label": label}) for text, label in examples]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def task_of(folder, train, dev, test):
    paths = {
        split: str(write(folder / f"{split}.jsonl", examples))
        for split, examples in (("train", train), ("dev", dev), ("test", test))
    }
    return FileTask(name="toy", metric="macro_f1", max_length=16, **paths)


TRAIN = [("a", "Zoo"), ("b\u2028c\x85", "apple"), ("c", "Zoo"), ("d", "mid")]


def test_labels_are_those_of_train_sorted_and_texts_unseen_that_train_has_not(tmp_path):
    dev = [("a", "Zoo"), ("x", "apple")]
    test = [("y", "mid"), ("b\u2028c\x85", "Zoo"), ("z", "apple")]
    task = task_of(tmp_path, TRAIN, dev, test).load()
    assert task.labels == ("Zoo", "apple", "mid")
    assert task.label_counts == (2, 1, 1)
    assert task.train.texts == [text for text, _ in TRAIN]
    assert task.train.labels == [0, 1, 0, 2]
    assert task.test.labels == [2, 0, 1]
    assert task.train.unseen == [False] * 4
    assert task.dev.unseen == [False, True]
    assert task.test.unseen == [True, False, True]
    assert (task.name, task.metric, task.max_length) == ("toy", "macro_f1", 16)
    digest = hashlib.sha256((tmp_path / "dev.jsonl").read_bytes()).hexdigest()
    assert task.fingerprints["dev"] == digest


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (TRAIN, [("x", "Zoo"), ("y", "other")], r"dev\.jsonl: labels \['other'\] do not occur"),
        ([("a", "one"), ("b", "one")], [("c", "one")], r"train\.jsonl: .* at least two labels"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(train, test, message, tmp_path):
    with pytest.raises(UserError, match=message):
        task_of(tmp_path, train, test, test).load()
