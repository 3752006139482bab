"""The rows of the benches' tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from rich.table import Table

from tartan.command_line.tables import titled_table


@dataclass(frozen=True)
class Row:
    """A row of a section's table: each field is a column, and is written as JSON.

    Attributes:
        title: title of the table.
    """

    title: ClassVar[str]


def table_of(rows: Sequence[Row]) -> Table:
    """Return the table of rows of the same class."""
    names = [field.name for field in fields(rows[0])]
    table = titled_table(rows[0].title, *(name.replace("_", " ") for name in names))
    for row in rows:
        table.add_row(*(_shown(getattr(row, name)) for name in names))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)
