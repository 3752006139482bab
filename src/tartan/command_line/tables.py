"""Makes tables for the terminal."""

from __future__ import annotations

from rich.table import Table


def titled_table(title: str, *columns: str) -> Table:
    """Return an empty table: words in the first column, numbers in the others."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        # a long name is folded, so that settings stay apart; half a number would be a wrong one
        if number:
            table.add_column(column, justify="right", overflow="ellipsis")
        else:
            table.add_column(column, justify="left", overflow="fold")
    return table
