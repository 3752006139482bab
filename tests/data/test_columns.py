"""Which columns are read: named, or found by sensible rules, or one error that lists them."""

from __future__ import annotations

import re

import pytest

from tartan.data.columns import Columns, choose_columns
from tartan.data.table.open import open_table
from tartan.errors import UserError


def table_of(folder, *columns, rows=(("some words", "3", "other words"),)):
    path = folder / "t.csv"
    lines = [",".join(columns), *(",".join(row[: len(columns)]) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return open_table(path)


@pytest.mark.parametrize(
    ("columns", "text", "label"),
    [
        (("text", "label"), "text", "label"),
        (("Text", "LABEL"), "Text", "LABEL"),
        (("sentence", "label", "source"), "sentence", "label"),
        (("review", "stars"), "review", "stars"),
        (("title", "label", "text"), "text", "label"),
        (("Utterance x", "group"), "Utterance x", "group"),  # the only words, the only other
        (("verbatim", "id", "label"), None, None),  # two columns of words
        (("verbatim", "number", "label")[:2], "verbatim", "number"),
        (("body", "id", "sentiment"), "body", "sentiment"),
        (("label", "id", "anything"), "anything", "label"),
    ],
)
def test_columns_are_found_by_common_names_or_as_the_only_ones(columns, text, label, tmp_path):
    rows = [("words" if c != "id" else "7") for c in columns]
    if columns[:1] == ("verbatim",) and len(columns) == 3:
        rows = ["words", "more words", "A"]
    if len(columns) == 2 and columns[1] in ("group", "number"):
        rows = ["words", "2"]
    table = table_of(tmp_path, *columns, rows=[tuple(rows)])
    if text is None:
        with pytest.raises(UserError, match="cannot tell which column holds the texts"):
            choose_columns(table, None, None)
    else:
        assert choose_columns(table, None, None) == Columns(text, label)


def test_named_columns_are_taken_whatever_the_others_are_called(tmp_path):
    table = table_of(tmp_path, "text", "label", "note")
    assert choose_columns(table, "note", None) == Columns("note", "label")
    assert choose_columns(table, None, "note") == Columns("text", "note")
    assert choose_columns(table, None, None, "note") == Columns("text", "label", "note")


@pytest.mark.parametrize(
    ("columns", "named", "message"),
    [
        (
            ("text", "label"),
            ("txt", None, None),
            "task.text=txt: {t} has the columns 'text', 'label'",
        ),
        (
            ("text", "label"),
            (None, "zzz", None),
            "task.label=zzz: {t} has the columns 'text', 'label'",
        ),
        (
            ("text", "label"),
            (None, None, "other"),
            "task.text_pair=other: {t} has the columns 'text', 'label'",
        ),
        (
            ("text", "label"),
            ("text", None, "text"),
            "task.text=text, task.text_pair=text: texts and labels must be columns of their own",
        ),
        (
            ("sentence", "label", "content"),
            (None, None, None),
            "{t}: cannot tell which column holds the texts; name it: task.text=COLUMN, and "
            "the second texts of pairs: task.text_pair=COLUMN ({t}, whose first row is read as "
            "names, has the columns 'sentence', 'label', 'content'; if it is not a header, put a "
            "line of names such as text,label first)",
        ),
        (
            ("text", "a", "b"),
            (None, None, None),
            "{t}: cannot tell which column holds the labels; name it: task.label=COLUMN ({t}, "
            "whose first row is read as names, has the columns 'text', 'a', 'b'; if it is not "
            "a header, put a line of names such as text,label first)",
        ),
        (
            ("text",),
            (None, None, None),
            "{t}: cannot tell which column holds the labels; name it: task.label=COLUMN ({t}, "
            "whose first row is read as names, has the column 'text'; if it is not a header, put a "
            "line of names such as text,label first)",
        ),
    ],
)
def test_what_cannot_be_told_is_one_error_with_the_columns_and_the_option(
    columns, named, message, tmp_path
):
    table = table_of(tmp_path, *columns)
    with pytest.raises(UserError) as caught:
        choose_columns(table, *named)
    assert str(caught.value) == message.format(t=tmp_path / "t.csv")


def test_an_example_of_a_header_has_the_separator_of_the_file(tmp_path):
    for name, content, header in (
        ("t.tsv", "a b\tc d\n", "text<tab>label"),
        ("t.csv", "a b;c d\n", "text;label"),
    ):
        (tmp_path / name).write_text(content + content.upper())
        with pytest.raises(UserError, match=f"put a line of names such as {header} first"):
            choose_columns(open_table(tmp_path / name), None, None)


def test_a_json_file_has_fields(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"words": "a b", "kind": 1}\n{"words": "c", "id": "x y"}\n')
    table = open_table(tmp_path / "t.jsonl")
    with pytest.raises(UserError, match=re.escape("has the fields 'words', 'kind', 'id'")):
        choose_columns(table, None, None)
    assert choose_columns(table, "words", "kind") == Columns("words", "kind")
