"""Labelled examples of a table: which columns, labels of every kind, and missing values."""

from __future__ import annotations

import io
import json

import pyarrow
import pyarrow.parquet
import pytest

from tartan.data.labelled import Columns, choose_columns, in_order, read_labelled
from tartan.data.table import open_table
from tartan.data.task_kind import TaskKind
from tartan.errors import UserError


def read(folder, name, content, columns=Columns(), **options):  # noqa: B008
    (folder / name).write_bytes(content)
    return read_labelled(open_table(folder / name), columns, TaskKind().label, **options)


def jsonl(*labels):
    return "".join(json.dumps({"text": "a", "label": label}) + "\n" for label in labels).encode()


def parquet(**columns):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("t.jsonl", jsonl("b", "a", 1), ["b", "a", "1"]),
        ("t.jsonl", jsonl(10, 2, -1), ["10", "2", "-1"]),
        ("t.jsonl", jsonl(1.0, 0, -2.0), ["1", "0", "-2"]),
        ("t.jsonl", jsonl(True, False), ["true", "false"]),
        ("t.csv", b"text,label\na,10\nb,02\nc,True\n", ["10", "02", "True"]),
        ("t.csv", b"text,label\na,x\nb, x\nc,x y \n", ["x", "x", "x y"]),
        ("t.parquet", parquet(text=["a", "b"], label=[3.0, 1.0]), ["3", "1"]),
        ("t.parquet", parquet(text=["a", "b"], label=[True, False]), ["true", "false"]),
    ],
)
def test_labels_are_what_the_user_wrote(name, content, labels, tmp_path):
    assert [example.label for example in read(tmp_path, name, content)] == labels


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["b", "a", "b"], ("a", "b")),
        (["10", "9", "1", "-2"], ("-2", "1", "9", "10")),
        (["2.5", "10", "1"], ("1", "2.5", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
    ],
)
def test_labels_are_sorted_by_value_where_all_are_numbers(labels, order):
    assert in_order(labels) == order


def test_pairs_row_numbers_and_missing_labels_are_kept(tmp_path):
    content = b"one,two,label\na,b,x\n,,\nc,d,\n"
    columns = Columns("one", "label", "two")
    examples = read(tmp_path, "t.csv", content, columns, empty_labels=True)
    assert examples == [("a", "x", "b", 2), ("c", None, "d", 4)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"text,label\na,x\nb, \n", "t.csv, line 3: the column 'label' is empty"),
        ("t.csv", b"text,label\n", "t.csv holds no examples"),
        ("t.jsonl", b'{"label": "x"}\n', "line 1: the column 'text' is missing"),
        ("t.jsonl", jsonl("x", None), "line 2: the column 'label' is empty or missing"),
        ("t.jsonl", jsonl(1.0, 0.13), "line 2: the column 'label' must be text, a whole"),
        ("t.jsonl", jsonl("\ud800"), "line 1: the column 'label' holds half of a surrogate"),
        ("t.parquet", parquet(text=["a", None], label=["x", "y"]), "row 2: the column 'text' is m"),
        ("t.parquet", parquet(text=[1, 2], label=["x", "y"]), "row 1: .*'text' is no text but int"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named_with_its_place(
    name, content, message, tmp_path
):
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path, name, content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "text", "label"),
    [
        ("text,label", "text", "label"),
        ("text,Label,label", "text", "label"),  # the exact name comes first
        ("Text,text,label", "text", "label"),
        ("Text,LABEL", "Text", "LABEL"),
        ("id,sentence,class", "sentence", "class"),
        ("sentence,review,label,text", "text", "label"),
    ],
)
def test_columns_are_found_by_their_names(columns, text, label, tmp_path):
    (tmp_path / "t.csv").write_text(f"{columns}\n")
    table = open_table(tmp_path / "t.csv")
    assert choose_columns(table, None, None, None) == Columns(text, label)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("a,b", {}, "has the columns 'a', 'b'; name that of the texts: task.text=COLUMN"),
        ("text,class,tag", {}, "name that of the labels: task.label=COLUMN"),
        ("text,label", {"text": "txt"}, "task.text=txt: .* has the columns 'text', 'label'"),
        ("text,label", {"text": "label", "label": "label"}, "must be columns of their own"),
    ],
)
def test_columns_that_cannot_be_found_are_one_line(columns, options, message, tmp_path):
    (tmp_path / "t.csv").write_text(f"{columns}\n")
    table, named = open_table(tmp_path / "t.csv"), {"text": None, "label": None, **options}
    with pytest.raises(UserError, match=message):
        choose_columns(table, **named, pair=None)
