"""Makes a table of a benchmark's settings for the terminal."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from src.command_line.tables import titled_table
from src.files.escape import one_line
from src.report.tables.table import ResultTable
from src.report.text.rows import Markup

_COLUMNS = ("setting", "test", "difference", "95% interval", "p, two-sided")
"""Those of an overview's columns that fit into a terminal."""
_TERMINAL = Markup(lambda text: escape(one_line(text)), bold="[bold]{}[/bold]", italic="{}")


def to_terminal(table: ResultTable) -> Table:
    """Return the columns of an overview that tell which setting is best, and how certainly."""
    shown = titled_table(escape(one_line(table.title)), *_COLUMNS)
    for column in shown.columns[1:]:
        column.no_wrap = True
    places = [(*table.heads, *table.columns).index(name) for name in _COLUMNS]
    for row in _TERMINAL.rows(table):
        shown.add_row(*(row[place] for place in places))
    return shown
