"""Reads all runs below a folder as plain data: finished, unfinished and failed ones."""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tartan.errors import UserError, first_line
from tartan.files import read_bytes, read_yaml
from tartan.runs.folder import RESULT, command_of, stored_options
from tartan.runs.result import Result, read_result

_LARGEST_LOG = 512 << 20
"""Maximum size of a log that is read: some five million rows [bytes]."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; options and command are empty where its folder does not tell them."""

    folder: Path
    name: str  # the folder's, relative to the folder of the report
    result: Result
    options: dict[str, Any]  # by dotted name, without those that do not change the training
    command: str
    finished: int  # when its result was written [ns]


@dataclass
class Folders:
    """The finished runs below a folder, and the names of unfinished and of damaged ones."""

    runs: list[Run] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)  # with the reason


def find_runs(root: Path) -> Folders:
    """Read every run below `root`; an unreadable run does not stop the others."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs")
    folders = Folders()
    for folder in _run_folders(root):
        name = folder.relative_to(root).as_posix()
        try:
            if (folder / RESULT).exists():
                folders.runs.append(read_run(folder, name))
            else:
                folders.unfinished.append(name)
        except (UserError, OSError) as error:
            folders.unreadable[name] = str(error)
    return folders


def read_run(folder: Path, name: str) -> Run:
    """Read the finished run in `folder`."""
    result = read_result(folder)
    if not (result.setting_id and result.data_id and result.label):
        raise UserError(f"{RESULT}: no setting_id, data_id or label, as before 0.2; train it again")
    options = stored_options(folder) if (folder / "config.yaml").exists() else {}
    finished = (folder / RESULT).stat().st_mtime_ns
    return Run(folder, name, result, options, read_command(folder), finished)


def read_command(folder: Path) -> str:
    """Return the run's command, from what Hydra stored; empty where there is nothing."""
    path = folder / ".hydra" / "hydra.yaml"
    try:
        return command_of(read_yaml(path)["hydra"]) if path.is_file() else ""
    except (AttributeError, LookupError, TypeError) as error:
        raise UserError(f"{path.name} is not what Hydra writes") from error


def read_steps(folder: Path, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return columns of a run's step log: stage, step, task, weight, and `more` of numbers."""
    kinds = {"stage": str, "task": str} | dict.fromkeys(("step", "weight", *more), float)
    content = read_bytes(folder / "steps.csv", _LARGEST_LOG)
    content = content[: content.rfind(b"\n") + 1]  # the last line may be incomplete
    try:
        return pd.read_csv(io.BytesIO(content), dtype=kinds, usecols=list(kinds))
    except ValueError as error:
        raise UserError(f"steps.csv: {first_line(error)}") from error


def _refuse(error: OSError) -> None:
    raise UserError(f"{error.filename} cannot be listed ({error.strerror})")


def _run_folders(root: Path) -> Iterator[Path]:
    for current, folders, files in os.walk(root, onerror=_refuse):
        if RESULT in files or "config.yaml" in files or ".hydra" in folders:
            folders.clear()
            yield Path(current)
        else:
            folders[:] = sorted(name for name in folders if not name.startswith("."))
