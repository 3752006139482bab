"""A classifier reads the columns that it was trained on; prediction guesses nothing."""

from __future__ import annotations

import shutil

import pytest

from tartan.data.columns import (
    Columns,
    columns_to_predict,
    read_trained_columns,
    write_trained_columns,
)
from tartan.data.table.open import open_table
from tartan.errors import UserError

DEEP = "[" * 100_000


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text("package,description,more\na,b,c\n")
    return open_table(tmp_path / "t.csv")


def test_columns_of_the_run_are_taken_where_none_is_said(table):
    found = columns_to_predict(table, None, None, Columns("description", ""))
    assert found == Columns("description", "", None)
    found = columns_to_predict(table, None, None, Columns("description", "", "more"))
    assert found == Columns("description", "", "more")


def test_what_is_said_comes_first(table):
    assert columns_to_predict(table, "more", None, Columns("description", "")).text == "more"
    found = columns_to_predict(table, "package", None, Columns("description", "", "more"))
    assert (found.text, found.pair) == ("package", "more")


@pytest.mark.parametrize(
    ("named", "trained", "message"),
    [
        ((None, None), Columns("abstract", ""), r"text=abstract: .*; name yours: text=COLUMN"),
        ((None, None), Columns("description", "", "other"), "name yours: text_pair=COLUMN"),
        (("more", None), Columns("description", "", "more"), "must be columns of their own"),
        ((None, "more"), Columns("description", ""), "was trained on single texts"),
        ((None, None), None, "cannot tell which column holds the texts; name it: text=COLUMN"),
        (("txt", None), None, "text=txt: .* has the columns 'package', 'description', 'more'"),
    ],
)
def test_what_is_not_there_is_an_error_that_lists_what_is(table, named, trained, message):
    with pytest.raises(UserError, match=message):
        columns_to_predict(table, *named, trained)


def test_lines_of_text_have_no_other_name_than_text(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    lines = open_table(tmp_path / "a.txt", ("text",))
    assert columns_to_predict(lines, None, None, Columns("description", "")).text == "text"
    assert columns_to_predict(lines, None, None, None).text == "text"
    with pytest.raises(UserError, match=r"text_pair=more: .*a\.txt has the columns 'text'"):
        columns_to_predict(lines, None, None, Columns("package", "", "more"))


def test_a_classifier_carries_its_columns_wherever_it_goes(tmp_path):
    run = tmp_path / "run"
    (run / "classifier").mkdir(parents=True)
    write_trained_columns({"text": "a", "label": "y", "text_pair": "b"}, run / "classifier")
    shutil.copytree(run / "classifier", tmp_path / "elsewhere")
    for folder in (run, run / "classifier", tmp_path / "elsewhere"):
        assert read_trained_columns(folder) == Columns("a", "", "b")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"text": 3, "text_pair": null}', DEEP])
def test_a_classifiers_own_note_that_is_damaged_is_an_error(tmp_path, content):
    """Another column of the table would be predicted without a word."""
    (tmp_path / "classifier").mkdir()
    (tmp_path / "classifier" / "columns.json").write_text(content)
    for given in (tmp_path, tmp_path / "classifier"):
        with pytest.raises(UserError, match=r"columns\.json is damaged; remove it, and name"):
            read_trained_columns(given)
