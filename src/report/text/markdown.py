"""Writes a table as Markdown."""

from __future__ import annotations

import pandas as pd

from src.files.escape import escape_markdown as escape
from src.report.tables.table import ResultTable
from src.report.text.rows import Markup

_MARKDOWN = Markup(escape, bold="**{}**", italic="*{}*")


def to_markdown(table: ResultTable) -> str:
    """Return title, table, notes; significant scores in bold, the paper's rows in italics."""
    aligned = ["left", "left", *["right"] * len(table.columns)]
    frame = pd.DataFrame(_MARKDOWN.rows(table), columns=_MARKDOWN.heads(table))
    text = frame.to_markdown(index=False, disable_numparse=True, colalign=aligned)
    notes = "\n".join(escape(note) + "  " for note in table.notes)
    return f"### {escape(table.title)}\n\n{text}\n\n{notes}\n"
