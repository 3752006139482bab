"""Finds the run that finished last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tartan.errors import UserError
from tartan.run_folder.name import RESULT

CONFIG = "config.yaml"
"""File that a run writes when it begins."""
LATEST = "latest"
"""Value of `model` that asks for the classifier of the run that finished last."""


def latest_run(runs: Path) -> Path:
    """Return the run folder below `runs` that has a classifier and was finished last.

    Raises:
        UserError: there is no finished run with a classifier.
    """
    ended = {run: at for run, at in _times(runs, RESULT) if (run / "classifier").is_dir()}
    if not ended:
        raise UserError(
            f"model={LATEST}: no finished run with a classifier below {runs}; name its folder, or "
            "the folder of runs: runs_dir=FOLDER"
        )
    return max(ended, key=lambda run: ended[run])


def newer_unfinished(run: Path, runs: Path) -> Path | None:
    """Return the newest run folder below `runs` that began after `run` ended and is unfinished."""
    ended = (run / RESULT).stat().st_mtime_ns
    unfinished = {own: at for own, at in _times(runs, CONFIG) if not (own / RESULT).exists()}
    newer = {own: at for own, at in unfinished.items() if at > ended}
    return max(newer, key=lambda own: newer[own], default=None)


def _times(runs: Path, name: str) -> Iterator[tuple[Path, int]]:
    """Yield each folder with a file of this name, and when it was written; no hidden ones."""
    for found in sorted(runs.rglob(name)):
        if not any(part.startswith(".") for part in found.relative_to(runs).parts):
            yield found.parent, found.stat().st_mtime_ns
