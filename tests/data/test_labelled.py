"""Labelled examples of a table: labels of every kind, their order, and missing values."""

from __future__ import annotations

import io
import json

import pyarrow
import pyarrow.parquet
import pytest

from tartan.data.columns import Columns
from tartan.data.labelled import in_order, read_labelled
from tartan.data.table.open import open_table
from tartan.errors import UserError


def read(folder, name, content, columns=Columns()):  # noqa: B008
    (folder / name).write_bytes(content)
    return read_labelled(open_table(folder / name), columns)


def jsonl(*labels):
    return "".join(json.dumps({"text": "a", "label": label}) + "\n" for label in labels).encode()


def parquet(**columns):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("t.jsonl", jsonl("b", "a"), ["b", "a"]),
        ("t.jsonl", jsonl(10, 2, -1), ["10", "2", "-1"]),
        ("t.jsonl", jsonl(1.0, 0, -2.0), ["1", "0", "-2"]),
        ("t.jsonl", jsonl(True, False), ["true", "false"]),
        ("t.csv", b"text,label\na,10\nb,02\nc,True\n", ["10", "02", "True"]),
        ("t.csv", b"text,label\na,1\nb,1.0\n", ["1", "1.0"]),
        ("t.parquet", parquet(text=["a", "b"], label=[3, 1]), ["3", "1"]),
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
        (["true", "false"], ("false", "true")),
    ],
)
def test_labels_are_sorted_by_value_where_all_are_numbers(labels, order):
    assert in_order(labels) == order


def test_whole_numbers_among_which_some_are_missing_are_labels_as_pandas_writes_them(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(jsonl(1.0, None, 0.0, float("nan")))
    found = read_labelled(open_table(tmp_path / "t.jsonl"), Columns(), empty_labels=True)
    assert [example.label for example in found] == ["1", "", "0", ""]


def test_pairs_and_row_numbers_are_kept(tmp_path):
    content = b"one,two,label\na,b,x\nc,d,y\n"
    examples = read(tmp_path, "t.csv", content, Columns("one", "label", "two"))
    assert examples == [("a", "x", "b", 2), ("c", "y", "d", 3)]
    assert examples[0].content == ("a", "b")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"text,label\na,x\nb, \n", "t.csv, line 3: the column 'label' is empty; fill"),
        ("t.csv", b"text,label\n", "t.csv holds no examples"),
        ("t.csv", b"", "t.csv holds no examples"),
        (
            "t.jsonl",
            jsonl("x", ""),
            "t.jsonl, line 2: the field 'label' is empty; fill it in, or remove",
        ),
        (
            "t.jsonl",
            jsonl("x", None, "y", ""),
            "t.jsonl, line 2: the field 'label' is empty, as in 1 more row; fill it in, or remove",
        ),
        (
            "t.jsonl",
            jsonl(1, "x"),
            "t.jsonl, line 2: the field 'label' must be a whole number, not str",
        ),
        (
            "t.jsonl",
            jsonl(True, 1),
            "t.jsonl, line 2: the field 'label' must be true or false, not int",
        ),
        (
            "t.jsonl",
            jsonl(0.5),
            "t.jsonl, line 1: the field 'label' is 0.5: the column looks like numbers, not "
            "classes; name another: task.label=COLUMN (in a program label=COLUMN), or make",
        ),
        (
            "t.jsonl",
            jsonl(1.0, 0.13),
            "t.jsonl, line 2: the field 'label' is 0.13: the column looks like numbers",
        ),
        (
            "t.jsonl",
            jsonl(1, float("inf")),
            "t.jsonl, line 2: the field 'label' is inf: the column looks like numbers",
        ),
        (
            "t.jsonl",
            jsonl("x", 1.0),
            "t.jsonl, line 2: the field 'label' must be a string, not float",
        ),
        (
            "t.jsonl",
            jsonl(1.0, float("nan")),
            "t.jsonl, line 2: the field 'label' is empty; fill it in, or remove the row",
        ),
        (
            "t.jsonl",
            jsonl([1.0]),
            "t.jsonl, line 1: the field 'label' must be a string, a whole number, true or false, "
            "not list",
        ),
        (
            "t.parquet",
            parquet(text=["a", None], label=["x", "y"]),
            "t.parquet, row 2: the column 'text' is empty; fill it in, or remove the row",
        ),
        (
            "t.parquet",
            parquet(text=[1, 2], label=["x", "y"]),
            "t.parquet, row 1: the column 'text' must be a string, not int",
        ),
        ("t.csv", b"words,label\na,x\n", "t.csv has no column 'text', only 'words', 'label'"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named_with_its_place(
    name, content, message, tmp_path
):
    with pytest.raises(UserError) as caught:
        read(tmp_path, name, content)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b'text,label\n"",x\n ,y\na,x\n,\n,\n'),
        ("t.jsonl", b'{"text": "", "label": "x"}\n{"text": " ", "label": "y"}\n'
                    b'{"text": "a", "label": "x"}\n'),
        ("t.parquet", parquet(text=["", " ", "a"], label=["x", "y", "x"])),
    ],
)  # fmt: skip
def test_every_format_takes_blank_texts_alike(name, content, tmp_path):
    assert [(e.text, e.label) for e in read(tmp_path, name, content)] == [
        ("", "x"), (" ", "y"), ("a", "x"),
    ]  # fmt: skip
