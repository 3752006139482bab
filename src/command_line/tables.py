"""Makes tables for the terminal."""

from __future__ import annotations

from rich.table import Table


def titled_table(title: str, *columns: str) -> Table:
    """Return an empty table: words in the first column, numbers in the others."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        # long words are folded: an ellipsis would hide what tells two settings apart
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table
