"""A classifier reads the columns that it was trained on; prediction guesses nothing."""

from __future__ import annotations

import shutil

import pytest

from tartan.data.labelled import (
    Columns,
    columns_to_predict,
    read_trained_columns,
    write_trained_columns,
)
from tartan.data.table import open_table
from tartan.errors import UserError


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text("package,description,more\na,b,c\n")
    return open_table(tmp_path / "t.csv")


def test_named_columns_come_before_those_of_training_and_have_to_be_there(table):
    single, pair = Columns("description", ""), Columns("description", "", "more")
    for named, trained, columns in (
        ((None, None), single, ("description", None)),
        (("package", None), pair, ("package", "more")),
        ((None, None), Columns("abstract", ""), None),
        (("more", None), pair, None),
        ((None, "more"), single, None),
        ((None, None), None, None),
    ):
        if columns is None:
            with pytest.raises(UserError):
                columns_to_predict(table, *named, trained)
        else:
            chosen = columns_to_predict(table, *named, trained)
            assert (chosen.text, chosen.pair) == columns


def test_a_classifier_carries_its_columns_wherever_it_goes(tmp_path):
    run = tmp_path / "run"
    (run / "classifier").mkdir(parents=True)
    write_trained_columns({"text": "a", "label": "y", "text_pair": "b"}, run / "classifier")
    shutil.copytree(run / "classifier", tmp_path / "elsewhere")
    for folder in (run, run / "classifier", tmp_path / "elsewhere"):
        assert read_trained_columns(folder) == Columns("a", "y", "b")
    (run / "classifier" / "columns.json").write_text("{")
    with pytest.raises(UserError, match=r"columns\.json"):  # not another column of the table
        read_trained_columns(run)
