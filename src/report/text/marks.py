"""Returns the marks beside the number in a cell."""

from __future__ import annotations

from src.report.tables.table import Cell, Score


def marks(cell: Cell) -> str:
    """Return marks that a table's notes explain.

    `†`: fewer seeds; `‡`: one of several settings; `§`: domain text of one's own.
    """
    if not isinstance(cell, Score):
        return ""
    found = {f"({cell.seeds})†": cell.fewer, "‡": cell.others, "§": cell.corpora}
    return " ".join(mark for mark, shown in found.items() if shown)
