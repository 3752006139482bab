"""A table as Markdown."""

from __future__ import annotations

import pandas as pd

from src.report.table import Cell, Score, Table
from src.report.text.escape import markdown as escape
from src.report.text.marks import marks


def to_markdown(table: Table) -> str:
    """Title, table and notes; the best in bold, the paper's rows in italics."""
    rows = [
        [
            _emphasised(row.name, row.from_paper),
            _emphasised(row.whose, row.from_paper),
            *(_cell(cell) for cell in row.cells),
        ]
        for row in table.rows
    ]
    heads = [escape(head) for head in (*table.heads, *table.columns)]
    aligned = ["left", "left", *["right"] * len(table.columns)]
    frame = pd.DataFrame(rows, columns=heads)
    text = frame.to_markdown(index=False, disable_numparse=True, colalign=aligned)
    notes = "\n".join(escape(note) + "  " for note in table.notes)
    return f"### {escape(table.title)}\n\n{text}\n\n{notes}\n"


def _cell(cell: Cell) -> str:
    words = escape(cell.words)
    bold = isinstance(cell, Score) and cell.best
    return (f"**{words}**" if bold else words) + f" {escape(marks(cell))}".rstrip()


def _emphasised(text: str, emphasised: bool) -> str:
    return f"*{escape(text)}*" if emphasised else escape(text)
