"""The rows of the benches' tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.table import Table

from src.command_line.tables import titled_table


@dataclass(frozen=True)
class Row(ABC):
    """A row of a section's table, whose fields are written as JSON.

    Attributes:
        title: title of the table.
        columns: headings of its columns.
    """

    title: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def cells(self) -> tuple[str, ...]:
        """Return what stands in each column."""


def table_of(rows: Sequence[Row]) -> Table:
    """Return the table of rows of the same class."""
    table = titled_table(rows[0].title, *rows[0].columns)
    for row in rows:
        table.add_row(*row.cells())
    return table
