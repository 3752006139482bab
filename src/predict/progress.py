"""How far predictions are, on the terminal."""

from __future__ import annotations

import time
from types import TracebackType

import rich.progress
from rich.console import Console

from src.data.table.base import Table


class Progress:
    """A bar on standard error, where that is a terminal; leave it before printing.

    Args:
        table: says how much of it is read.
        begun: rows that are done already.
    """

    def __init__(self, table: Table, begun: int) -> None:
        console = Console(stderr=True)
        self._table, self._begun = table, begun
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("predicting"),
            rich.progress.BarColumn(),
            rich.progress.TaskProgressColumn(),
            rich.progress.TextColumn("{task.fields[rows]}"),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Progress:
        done, total = self._table.progress()
        self._started = time.monotonic()
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=done, rows="")
        return self

    def show(self, rows: int) -> None:
        """So many rows are written."""
        done, total = self._table.progress()
        rate = (rows - self._begun) / max(time.monotonic() - self._started, 1e-9)
        self._bar.update(
            self._task, completed=done, total=total, rows=f"{rows:,} rows, {rate:,.0f}/s"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
