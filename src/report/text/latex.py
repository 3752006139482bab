"""A table as LaTeX, for `booktabs`."""

from __future__ import annotations

import pandas as pd

from src.report.table import Cell, Score, Table
from src.report.text.escape import latex as escape
from src.report.text.marks import marks


def to_latex(table: Table) -> str:
    """A `table` environment; the best in bold, the paper's rows in italics, notes below."""
    rows = [
        [
            _italic(row.name, row.from_paper),
            _italic(row.whose, row.from_paper),
            *(_cell(cell) for cell in row.cells),
        ]
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=[escape(head) for head in (*table.heads, *table.columns)])
    body = frame.to_latex(index=False, escape=False, column_format="ll" + "r" * len(table.columns))
    notes = " ".join(escape(note) for note in table.notes)
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{escape(table.title)}}}\n\\label{{tab:{table.key}-{table.part}}}\n"
        f"{body}\\par\\smallskip\\footnotesize {notes}\n\\end{{table}}\n"
    )


def _cell(cell: Cell) -> str:
    words = escape(cell.words)
    bold = isinstance(cell, Score) and cell.best
    return (f"\\textbf{{{words}}}" if bold else words) + f" {escape(marks(cell))}".rstrip()


def _italic(text: str, italic: bool) -> str:
    return f"\\textit{{{escape(text)}}}" if italic else escape(text)
