"""Removes the folder of a run that ended before it began."""

from __future__ import annotations

import shutil
from pathlib import Path

from tartan.run_folder.lock import LOCK

_OF_HYDRA = {".hydra", "run.log", LOCK}
"""What Hydra and the lock have put into a folder before a run reads its data."""


def remove_unbegun(folder: Path) -> None:
    """Remove a run's folder if nothing of a run is in it, which a report would wait for.

    Args:
        folder: the run folder, whose lock this process has or no process has.
    """
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if ".hydra" not in found or not found <= _OF_HYDRA:
        return
    shutil.rmtree(folder / ".hydra")
    for name in found - {".hydra"}:
        (folder / name).unlink()
    if not folder.is_symlink() and folder.resolve() != Path.cwd():
        folder.rmdir()
