"""Writes a table as LaTeX, for `booktabs`."""

from __future__ import annotations

import pandas as pd

from src.files.escape import escape_latex as escape
from src.report.tables.table import ResultTable
from src.report.text.rows import Markup

_LATEX = Markup(escape, bold=r"\textbf{{}}", italic=r"\textit{{}}")


def to_latex(table: ResultTable) -> str:
    """Return a `table` environment; significant scores in bold, the paper's rows in italics."""
    frame = pd.DataFrame(_LATEX.rows(table), columns=_LATEX.heads(table))
    body = frame.to_latex(index=False, escape=False, column_format="ll" + "r" * len(table.columns))
    notes = " ".join(escape(note) for note in table.notes)
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{escape(table.title)}}}\n\\label{{tab:{table.key}-{table.part}}}\n"
        f"{body}\\par\\smallskip\\footnotesize {notes}\n\\end{{table}}\n"
    )
