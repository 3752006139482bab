"""Finds the run that finished last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from src.errors import UserError
from src.run_folder.name import RESULT

CONFIG = "config.yaml"
"""File that a run writes when it begins."""
LATEST = "latest"
"""Value of `model` that asks for the classifier of the run that finished last."""


def latest_run(runs: Path) -> Path:
    """Return the run folder below `runs` that has a classifier and was finished last.

    Raises:
        UserError: there is no finished run with a classifier.
    """
    ended = {
        found.parent: found.stat().st_mtime_ns
        for found in _visible(runs, RESULT)
        if (found.parent / "classifier").is_dir()
    }
    if not ended:
        raise UserError(
            f"model={LATEST}: no finished run with a classifier below {runs}; name its folder, or "
            "the folder of runs: runs_dir=FOLDER"
        )
    return max(sorted(ended), key=lambda folder: ended[folder])


def newer_unfinished(run: Path, runs: Path) -> Path | None:
    """Return the newest run folder below `runs` that began after `run` ended and is unfinished."""
    ended = (run / RESULT).stat().st_mtime_ns
    began = {
        found.parent: found.stat().st_mtime_ns
        for found in _visible(runs, CONFIG)
        if not (found.parent / RESULT).exists()
    }
    newer = [folder for folder in sorted(began) if began[folder] > ended]
    return max(newer, key=lambda folder: began[folder], default=None)


def _visible(runs: Path, name: str) -> Iterator[Path]:
    """Yield the files of a name that are in no hidden folder, as .hydra/ is."""
    for found in runs.rglob(name):
        if not any(part.startswith(".") for part in found.relative_to(runs).parts):
            yield found
