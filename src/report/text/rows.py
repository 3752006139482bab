"""Writes a table's rows in a markup language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from src.report.tables.table import Cell, ResultTable


@dataclass(frozen=True)
class Markup:
    """A markup language.

    Attributes:
        escape: escapes a text, so that it is shown as it is.
        bold: pattern with `{}` for the text of significantly better scores.
        italic: pattern with `{}` for the names of the paper's rows.
    """

    escape: Callable[[str], str]
    bold: str
    italic: str

    def rows(self, table: ResultTable) -> list[list[str]]:
        """Return each row's name, origin and cells."""
        return [
            [
                self._name(row.name, row.from_paper),
                self._name(row.whose, row.from_paper),
                *(self._cell(cell) for cell in row.cells),
            ]
            for row in table.rows
        ]

    def heads(self, table: ResultTable) -> list[str]:
        """Return the names of all columns."""
        return [self.escape(head) for head in (*table.heads, *table.columns)]

    def _cell(self, cell: Cell) -> str:
        words = self.escape(cell.words)
        shown = self.bold.replace("{}", words) if cell.significant else words
        return shown + f" {self.escape(cell.marks)}".rstrip()

    def _name(self, text: str, from_paper: bool) -> str:
        escaped = self.escape(text)
        return self.italic.replace("{}", escaped) if from_paper else escaped
