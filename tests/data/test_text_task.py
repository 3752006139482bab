"""Reading the labelled splits: order of labels, unseen texts, and what is said of bad files."""

from __future__ import annotations

import hashlib
import json

import pytest

from tartan.data.columns import Columns
from tartan.data.file_task import FileTask
from tartan.data.labelled import read_labelled
from tartan.data.table.open import open_table
from tartan.data.text_task import TaskFiles, TextSource
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


class Built(TextSource):
    """A task of somebody's own, with what its `files` returns."""

    given: object = None

    def files(self):
        return type(self).given

    def domain_file(self, size):
        raise NotImplementedError


class BuiltOfPairs(Built):
    def columns(self, train):
        return Columns(pair="text_pair")


def pairs(folder):
    row = {"text": "a", "text_pair": "b", "label": "x"}
    rows = [row, {**row, "label": "y"}]
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return TaskFiles(path, path, path)


TRAIN = [("a", "Zoo"), ("b", "apple"), ("c", "Zoo"), ("d", "mid")]


@pytest.fixture
def loaded(tmp_path):
    dev = [("a", "Zoo"), ("x", "apple")]
    test = [("y", "mid"), ("b", "Zoo"), ("z", "apple")]
    return task_of(tmp_path, TRAIN, dev, test).load()


def test_labels_are_those_of_train_sorted(loaded):
    assert loaded.labels == ("Zoo", "apple", "mid")
    assert loaded.train.labels == [0, 1, 0, 2]
    assert loaded.test.labels == [2, 0, 1]


def test_texts_that_train_has_are_not_unseen(loaded):
    assert loaded.train.unseen == [False] * 4
    assert loaded.dev.unseen == [False, True]
    assert loaded.test.unseen == [True, False, True]


def test_the_last_example_of_a_file_without_a_final_newline_is_read(loaded, tmp_path):
    assert not (tmp_path / "train.jsonl").read_text().endswith("\n")
    assert loaded.train.texts == ["a", "b", "c", "d"]
    assert (len(loaded.train), len(loaded.dev), len(loaded.test)) == (4, 2, 3)


def test_what_the_source_says_of_itself_is_kept(loaded, tmp_path):
    assert (loaded.name, loaded.metric, loaded.max_length) == ("toy", "macro_f1", 16)
    digest = hashlib.sha256((tmp_path / "dev.jsonl").read_bytes()).hexdigest()
    assert loaded.fingerprints["dev"] == digest


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_label_unknown_to_train_is_named_with_its_file(split, tmp_path):
    splits = {"dev": [("x", "Zoo")], "test": [("y", "Zoo")]}
    splits[split] = [("x", "Zoo"), ("y", "other")]
    with pytest.raises(UserError, match=rf"{split}\.jsonl: labels \['other'\] do not occur in"):
        task_of(tmp_path, TRAIN, **splits).load()


def test_a_single_label_is_an_error(tmp_path):
    task = task_of(tmp_path, [("a", "one"), ("b", "one")], [("c", "one")], [("d", "one")])
    with pytest.raises(UserError, match=r"train\.jsonl: training needs at least two labels"):
        task.load()


def read(path):
    """Texts and labels of a file with these two columns."""
    return [(text, label) for text, label, *_ in read_labelled(open_table(path), Columns())]


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.jsonl does not exist"):
        read(tmp_path / "nowhere.jsonl")


def test_blank_lines_and_other_fields_are_ignored(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text('\n{"text": "a", "label": "b", "metadata": {"id": 1}}\n\n')
    assert read(path) == [("a", "b")]


def test_unicode_line_separators_inside_a_text_do_not_split_it(tmp_path):
    path = tmp_path / "f.jsonl"
    line = json.dumps({"text": "a\u2028b\x85c", "label": "x"}, ensure_ascii=False)
    path.write_text(line + "\n", encoding="utf-8")
    assert read(path) == [("a\u2028b\x85c", "x")]


def test_a_column_of_pairs_that_is_not_read_is_warned_of(tmp_path, monkeypatch, caplog):
    for kind, warns in ((Built, True), (BuiltOfPairs, False)):
        caplog.clear()
        monkeypatch.setattr(kind, "given", pairs(tmp_path))
        task = kind(name="toy", metric="macro_f1", max_length=16).load()
        assert task.train.pairs == (None if warns else ["b", "b"])
        assert ("has a column 'text_pair' that is not read" in caplog.text) == warns
