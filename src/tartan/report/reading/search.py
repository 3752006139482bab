"""Reads all runs below a folder: finished, unfinished and unreadable ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tartan.errors import UserError
from tartan.report.reading.run import Run, read_run
from tartan.report.reading.steps import last_step
from tartan.run_folder.lock import is_running
from tartan.run_folder.name import RESULT
from tartan.run_folder.stored import stored_options

State = Literal["finished", "running", "failed", "stopped", "not begun", "unreadable", "missing"]


@dataclass(frozen=True)
class Job:
    """A run that exists or is planned.

    Attributes:
        state: its present state: of a run without a result `running` while a process holds the
            folder's lock, else `stopped`, or `not begun` before it has a config.
        name: its folder, relative to the folder of the report; empty before it has one.
        command: the command that runs it; empty if unknown.
        detail: how far it got, or why it failed.
        began: when it began, in seconds since the epoch; None if unknown.
    """

    state: State
    name: str
    command: str
    detail: str = ""
    began: float | None = None


@dataclass(frozen=True)
class Unreadable:
    """A run that cannot be read, with the reason in one line."""

    name: str
    reason: str


@dataclass
class Found:
    """Everything below a folder of runs, in the order of the folders' names."""

    root: Path
    runs: list[Run] = field(default_factory=list)
    unfinished: list[Job] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    at: float = field(default_factory=time.time)


def search(root: Path) -> Found:
    """Read every run below `root`; an unreadable run does not stop the others.

    Raises:
        UserError: `root` is not a folder, or cannot be listed.
    """
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs")
    found = Found(root)
    for folder in _run_folders(root):
        name = folder.relative_to(root).as_posix()
        try:
            if (folder / RESULT).exists():
                found.runs.append(read_run(folder, name))
            else:
                found.unfinished.append(_unfinished(folder, name))
        except UserError as error:
            found.unreadable.append(Unreadable(name, str(error)))
    return found


def _run_folders(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename} cannot be listed ({error.strerror})")

    for current, folders, files in os.walk(root, onerror=refuse):
        if RESULT in files or "config.yaml" in files or ".hydra" in folders:
            folders.clear()
            yield Path(current)
        else:
            folders[:] = sorted(name for name in folders if not name.startswith("."))


def _unfinished(folder: Path, name: str) -> Job:
    began = (folder / "config.yaml").exists()
    if began:
        stored_options(folder)  # whoever wrote it: it has to be one of ours
    try:
        held = is_running(folder)
        reference = folder / "config.yaml" if began else folder / ".hydra"
        at = reference.stat().st_mtime
    except OSError as error:
        raise UserError(f"{error.filename} cannot be looked at ({error.strerror})") from error
    state: State = "running" if held else "stopped" if began else "not begun"
    return Job(state, name, "", last_step(folder) if began else "", at)
