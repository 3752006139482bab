"""The classifier of the run that ended last."""

from __future__ import annotations

from pathlib import Path

from src.errors import UserError
from src.run_folder.name import RESULT

LATEST = "latest"
"""What `model=` is called with for it."""


def latest_run(runs: Path) -> Path:
    """Return the run folder below `runs` that has a classifier and was finished last.

    Raises:
        UserError: there is none.
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
