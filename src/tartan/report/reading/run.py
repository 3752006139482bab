"""Reads a finished run: its folder, result, config and command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tartan.errors import UserError
from tartan.files import read_bytes, read_yaml
from tartan.run_folder.name import RESULT, command_of, option_of, places_of
from tartan.run_folder.result import Result, read_result
from tartan.run_folder.stored import stored_options


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes:
        folder: the run folder.
        name: the folder's name, relative to the folder of the report.
        result: the run's result.
        options: its options by dotted name, without those that do not change the training; empty
            where the folder has no config.
        command: the command that trains it; None if unknown.
        overrides: the options that the command gave, as it gave them: `${seed}` is not resolved.
        finished: when its result was written, in nanoseconds since the epoch.
    """

    folder: Path
    name: str
    result: Result
    options: dict[str, Any]
    command: str | None
    overrides: tuple[str, ...]
    finished: int

    def given(self, option: str) -> str | None:
        """Return the value that the command gave an option, not resolved; None if it gave none."""
        values = [o.partition("=")[2] for o in self.overrides if option_of(o) == option]
        return values[-1].strip("'\"") if values else None


def read_run(folder: Path, name: str) -> Run:
    """Read the finished run in `folder`.

    Raises:
        UserError: the run cannot be read.
    """
    result = read_result(folder)
    options = stored_options(folder) if (folder / "config.yaml").exists() else {}
    try:
        finished = (folder / RESULT).stat().st_mtime_ns
    except OSError as error:
        raise UserError(f"{RESULT} cannot be looked at ({error.strerror})") from error
    overrides = tuple(_overrides(folder) or ())
    return Run(folder, name, result, options, read_command(folder), overrides, finished)


def read_command(folder: Path) -> str | None:
    """Return the run's command, from the overrides that Hydra stored; None where there are none.

    Raises:
        UserError: the overrides cannot be read.
    """
    overrides = _overrides(folder)
    return None if overrides is None else command_of(overrides, _places(folder))


def _overrides(folder: Path) -> list[str] | None:
    """Return the overrides that Hydra stored in the folder; None where there are none.

    Raises:
        UserError: they cannot be read.
    """
    path = folder / ".hydra" / "overrides.yaml"
    if not path.is_file():
        return None
    overrides = read_yaml(path) or []
    if not isinstance(overrides, list) or not all(isinstance(o, str) for o in overrides):
        raise UserError(".hydra/overrides.yaml is not a list of overrides")
    return overrides


def _places(folder: Path) -> list[str]:
    """Return the places of configs and runs that Hydra stored in the folder.

    Raises:
        UserError: they cannot be read.
    """
    path = folder / ".hydra" / "hydra.yaml"
    stored = read_bytes(path) if path.is_file() else b""
    if b"hydra.searchpath=" not in stored and b"provider: command-line" not in stored:
        return []  # nothing that a command needs: most runs, and reading YAML is slow
    content = read_yaml(path)
    return places_of(content.get("hydra") if isinstance(content, dict) else None)
