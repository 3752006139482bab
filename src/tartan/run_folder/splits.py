"""Writes `splits.csv`: which rows of the user's file were trained on, and which were held out."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tartan.data.end_task import EndTask
from tartan.data.text_task import TextTask
from tartan.files import write_durably

SPLITS = "splits.csv"
_SHOWN = 80
"""Number of characters of each text in the file, by which a row is recognised."""


def write_splits(end_task: EndTask, folder: Path) -> None:
    """Write the file if dev or test were held out of the training examples."""
    assignment = end_task.assignment if isinstance(end_task, TextTask) else None
    if assignment is None:
        return
    rows = [(split, e.number, e.label, e.text[:_SHOWN]) for split, e in assignment.rows]
    table = pd.DataFrame(rows, columns=["split", assignment.unit, "label", "text"], dtype=object)
    # with a byte order mark, by which spreadsheet programs know UTF-8
    form = {"index": False, "encoding": "utf-8-sig", "lineterminator": "\r\n"}
    write_durably(folder / SPLITS, lambda path: table.to_csv(path, **form))
