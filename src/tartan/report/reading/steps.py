"""Reads a run's logs, above all `steps.csv`: each task's numbers in each step."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from tartan.errors import UserError, first_line
from tartan.files import read_bytes

_LARGEST = 512 << 20
"""Maximum size of a log that is read: some five million rows [bytes]."""


def read_steps(folder: Path, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return the step log of a run: a row for each step and task, with its weight.

    Args:
        folder: the run folder.
        more: columns of numbers to return too; where an entry is empty, NaN.

    Raises:
        UserError: there is no log, or it is of another form.
    """
    kinds = {"stage": str, "step": float, "task": str, "weight": float}
    return read_log(folder / "steps.csv", kinds | dict.fromkeys(more, float))


def read_log(path: Path, kinds: Mapping[str, type]) -> pd.DataFrame:
    """Return columns of a log that a run writes line by line, without an incomplete last line.

    Args:
        path: the log.
        kinds: types of the columns to return, by name.

    Raises:
        UserError: there is no log, or it is of another form.
    """
    content = read_bytes(path, _LARGEST)
    content = content[: content.rfind(b"\n") + 1]
    try:
        return pd.read_csv(io.BytesIO(content), dtype=dict(kinds), usecols=list(kinds))
    except ValueError as error:
        raise UserError(f"{path.name}: {first_line(error)}") from error


def last_step(folder: Path) -> str:
    """Return an unfinished run's last step, e.g. `joint, step 30`; empty before the first."""
    try:
        last = read_log(folder / "steps.csv", {"stage": str, "step": float})[-1:].dropna()
    except UserError:
        return ""
    return ", ".join(f"{row.stage}, step {row.step:.0f}" for row in last.itertuples())
