"""`steps.csv` as it is read back: what each task did in each step."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from src.errors import UserError, first_line
from src.files.plain import read_bytes

NEEDED = ("stage", "step", "task", "weight")
"""Columns that the figures need; a log has these three first, and others besides."""
_LARGEST = 512 << 20
"""Bytes: some five million rows."""
_TAIL = 4096
"""Bytes at the end of a log, in which its last whole line is."""


def read_steps(folder: Path) -> pd.DataFrame:
    """The step log of a run: a row for each step and task, with the columns `NEEDED`.

    A last line that is being written is left out.

    Raises:
        UserError: there is none, or it is another file; one line.
    """
    content = read_bytes(folder / "steps.csv", _LARGEST)
    content = content[: content.rfind(b"\n") + 1]
    kinds = {"stage": str, "step": float, "task": str, "weight": float}
    try:
        return pd.read_csv(io.BytesIO(content), dtype=kinds, usecols=list(NEEDED))
    except (ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise UserError(f"steps.csv: {first_line(error)}") from error


def last_step(folder: Path) -> str:
    """Return the last step of an unfinished run, e.g. `joint, step 30`; empty before its first."""
    path = folder / "steps.csv"
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", errors="replace").split("\n")[:-1]
    except OSError:
        return ""
    cells = lines[-1].split(",") if lines else []
    if len(cells) < len(NEEDED) or not cells[1].isdecimal():
        return ""
    return f"{cells[0]}, step {cells[1]}"
