"""Finds the run that finished last."""

from __future__ import annotations

from pathlib import Path

from src.errors import UserError
from src.run_folder.name import RESULT

LATEST = "latest"
"""Value of `model` that asks for the classifier of the run that finished last."""


def latest_run(runs: Path) -> Path:
    """Return the run folder below `runs` that has a classifier and was finished last.

    Raises:
        UserError: there is no finished run with a classifier.
    """
    ended = {
        found.parent: found.stat().st_mtime_ns
        for found in runs.rglob(RESULT)
        if (found.parent / "classifier").is_dir()
    }
    if not ended:
        raise UserError(
            f"model={LATEST}: no finished run with a classifier below {runs}; name its folder, or "
            "the folder of runs: runs_dir=FOLDER"
        )
    return max(sorted(ended), key=lambda folder: ended[folder])
