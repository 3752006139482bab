"""A file's text is in the column that the classifier was trained on, where it has that one."""

from __future__ import annotations

import json

import pytest

from src.errors import UserError
from src.predict.columns import Found, Wanted, trained_columns

COLUMNS = ["package", "description", "more"]


def test_columns_of_the_run_are_taken_where_none_is_said():
    wanted = Wanted(trained=("description", None))
    assert wanted.found_in(COLUMNS, COLUMNS, "f") == Found("description", None)
    pairs = Wanted(trained=("description", "more"))
    assert pairs.found_in(COLUMNS, COLUMNS, "f") == Found("description", "more")


def test_what_is_said_comes_first():
    wanted = Wanted(text="more", trained=("description", None))
    assert wanted.found_in(COLUMNS, COLUMNS, "f") == Found("more", None)


def test_columns_that_the_file_has_not_leave_it_to_the_user():
    with pytest.raises(UserError, match="say so with text=COLUMN"):
        Wanted(trained=("abstract", None)).found_in(COLUMNS, COLUMNS, "f")


def test_they_are_read_from_the_run_of_a_classifier(tmp_path):
    columns = {"text": "description", "label": "section", "text_pair": None}
    (tmp_path / "result.json").write_text(json.dumps({"data": {"columns": columns}}))
    assert trained_columns(tmp_path) == trained_columns(tmp_path / "classifier")
    assert trained_columns(tmp_path) == ("description", None)


@pytest.mark.parametrize("content", ["{", "[]", '{"data": {}}', '{"data": {"columns": 3}}'])
def test_a_folder_that_does_not_tell_is_no_error(tmp_path, content):
    (tmp_path / "result.json").write_text(content)
    assert trained_columns(tmp_path) is None
    assert trained_columns(tmp_path / "nowhere" / "deep") is None
