"""Writes tables as Markdown, LaTeX and CSV, and for the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from rich.markup import escape
from rich.table import Table

from tartan.command_line.tables import titled_table
from tartan.files import escape_markdown, one_line
from tartan.report.tables.table import Cell, ResultTable

_IN_TERMINAL = ["setting", "test", "difference", "95% interval", "p, two-sided"]
"""Those of an overview's columns that fit into a terminal."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "§": r"\S{}",
}
_FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet takes for a formula."""


def escape_latex(text: str) -> str:
    """Return the text on one line, with all LaTeX syntax escaped."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def escape_csv_cell(text: str) -> str:
    """Return the text on one line, with an apostrophe before what a spreadsheet would compute."""
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_markdown(table: ResultTable) -> str:
    """Return title, table, notes; significant scores in bold, the paper's rows in italics."""
    text = markdown_of(_frame(table, escape_markdown, "**{}**", "*{}*"), left=2)
    notes = "\n".join(escape_markdown(note) + "  " for note in table.notes)
    return f"### {escape_markdown(table.title)}\n\n{text}\n\n{notes}\n"


def markdown_of(frame: pd.DataFrame, left: int) -> str:
    """Return a frame of Markdown as a table; all columns but the first `left` are numbers."""
    aligned = ["left"] * left + ["right"] * (len(frame.columns) - left)
    return str(frame.to_markdown(index=False, disable_numparse=True, colalign=aligned))


def to_latex(table: ResultTable) -> str:
    """Return a `table` environment of `booktabs`, with bold and italics as `to_markdown`."""
    frame = _frame(table, escape_latex, r"\textbf{{}}", r"\textit{{}}")
    body = frame.to_latex(index=False, escape=False, column_format="ll" + "r" * len(table.columns))
    notes = " ".join(escape_latex(note) for note in table.notes)
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{escape_latex(table.title)}}}\n\\label{{tab:{table.key}-{table.part}}}\n"
        f"{body}\\par\\smallskip\\footnotesize {notes}\n\\end{{table}}\n"
    )


def to_terminal(table: ResultTable) -> Table:
    """Return the columns of an overview that tell which setting is best, and how certainly."""
    shown = titled_table(escape(one_line(table.title)), *_IN_TERMINAL)
    frame = _frame(table, lambda text: escape(one_line(text)), "[bold]{}[/bold]", "{}")
    for row in frame[_IN_TERMINAL].itertuples(index=False):
        shown.add_row(*row)
    return shown


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
            "value": cell.value,
            "deviation": cell.deviation,
            "seeds": cell.seeds,
            "significant": cell.significant,
            "text": escape_csv_cell(cell.words),
            "folders": escape_csv_cell("; ".join(_folders(cell))),
        }
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    frame = pd.DataFrame(rows).astype({"seeds": "Int64"})
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _folders(cell: Cell) -> list[str]:
    return [] if cell.setting is None else [run.name for run in cell.setting.runs]


def _frame(
    table: ResultTable, escape: Callable[[str], str], bold: str, italic: str
) -> pd.DataFrame:
    """Return a table's text in a markup language.

    Args:
        escape: escapes a text, so that it is shown as it is.
        bold: pattern with `{}` for the text of significantly better scores.
        italic: pattern with `{}` for the names of the paper's rows.
    """
    rows = []
    for row in table.rows:
        names = [escape(name) for name in (row.name, row.whose)]
        shown = [italic.replace("{}", name) for name in names] if row.from_paper else names
        for cell in row.cells:
            words = escape(cell.words)
            words = bold.replace("{}", words) if cell.significant else words
            shown.append(f"{words} {escape(cell.marks)}".rstrip())
        rows.append(shown)
    return pd.DataFrame(rows, columns=[escape(head) for head in (*table.heads, *table.columns)])
