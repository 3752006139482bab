"""A finished run: where it lies, what it reached, and what was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from src.errors import UserError, first_line
from src.files.plain import check_no_references, read_bytes, read_yaml
from src.run_folder.name import command_of
from src.run_folder.result import Result, read_result
from src.run_folder.stored import LARGEST_CONFIG, stored_options


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes:
        folder: where it lies.
        name: the folder below the one that is reported on.
        result: what it reached.
        options: its config by dotted name, without what does not change what is trained; empty
            where the folder has none.
        command: what trains it; None where the folder does not tell.
    """

    folder: Path
    name: str
    result: Result
    options: dict[str, Any]
    command: str | None


def read_run(folder: Path, name: str) -> Run:
    """The finished run in `folder`.

    Raises:
        UserError: what cannot be read of it, in one line.
    """
    result = read_result(folder)
    options = read_options(folder) if (folder / "config.yaml").exists() else {}
    return Run(folder, name, result, options, read_command(folder))


def read_options(folder: Path) -> dict[str, Any]:
    """The stored config by dotted name, as plain data.

    Raises:
        UserError: it cannot be read; one line.
    """
    content = read_bytes(folder / "config.yaml", LARGEST_CONFIG).decode("utf-8", errors="replace")
    try:
        check_no_references(content)
        return stored_options(folder)
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"config.yaml: {first_line(error)}") from error
    except RecursionError as error:
        raise UserError("config.yaml is nested too deeply") from error


def read_command(folder: Path) -> str | None:
    """The command whose overrides Hydra noted in the folder; None without such a note.

    Raises:
        UserError: the note cannot be read.
    """
    path = folder / ".hydra" / "overrides.yaml"
    if not path.is_file():
        return None
    overrides = read_yaml(path) or []
    if not isinstance(overrides, list) or not all(isinstance(o, str) for o in overrides):
        raise UserError(".hydra/overrides.yaml is no list of overrides")
    return command_of(overrides, _hydra_overrides(folder))


def _hydra_overrides(folder: Path) -> list[str]:
    """Hydra's own overrides, where the folder tells.

    Raises:
        UserError: the note cannot be read.
    """
    path = folder / ".hydra" / "hydra.yaml"
    if not path.is_file() or b"hydra.searchpath=" not in read_bytes(path):
        return []  # nothing that a command needs: most runs, and reading YAML is slow
    content = read_yaml(path)
    for name in ("hydra", "overrides", "hydra"):
        content = content.get(name) if isinstance(content, dict) else None
    return [o for o in content if isinstance(o, str)] if isinstance(content, list) else []
