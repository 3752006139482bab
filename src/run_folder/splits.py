"""Writes `splits.csv`: which rows of the user's file were trained on, and which were held out."""

from __future__ import annotations

import csv
from pathlib import Path

from src.data.end_task import EndTask
from src.data.text_task import TextTask
from src.files.durable import write_durably

SPLITS = "splits.csv"
_SHOWN = 80
"""Number of characters of each text in the file, by which a row is recognised."""


def write_splits(end_task: EndTask, folder: Path) -> None:
    """Write the file if dev or test were held out of the training examples."""
    assignment = end_task.assignment if isinstance(end_task, TextTask) else None
    if assignment is None:
        return

    def write(path: Path) -> None:
        # with a byte order mark, by which spreadsheet programs know UTF-8
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            table = csv.writer(file)
            table.writerow(["split", assignment.unit, "label", "text"])
            for split, example in assignment.rows:
                table.writerow([split, example.number, example.label, example.text[:_SHOWN]])

    write_durably(folder / SPLITS, write)
