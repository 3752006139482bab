"""Writes a table as CSV for other programs: numbers as numbers, one row for each cell."""

from __future__ import annotations

import pandas as pd

from src.files.escape import escape_csv_cell
from src.report.tables.table import Cell, ResultTable


def to_csv(table: ResultTable) -> str:
    """Return a CSV with one row for each cell, scores as shares of 1.

    Columns: table, part, row, whose, column, value, deviation, seeds, significant, text, folders.
    """
    rows = [
        {
            "table": table.key,
            "part": "whole" if row.from_paper else table.part,
            "row": escape_csv_cell(row.name),
            "whose": escape_csv_cell(row.whose),
            "column": escape_csv_cell(column),
            **_entries(cell),
        }
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    frame = pd.DataFrame(rows).astype({"seeds": "Int64"})
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def _entries(cell: Cell) -> dict[str, float | int | str | bool | None]:
    runs = () if cell.setting is None else cell.setting.runs
    return {
        "value": cell.value,
        "deviation": cell.deviation,
        "seeds": cell.seeds,
        "significant": cell.significant,
        "text": escape_csv_cell(cell.words),
        "folders": escape_csv_cell("; ".join(run.name for run in runs)),
    }
