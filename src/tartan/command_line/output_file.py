"""Checks the file that a command is to write, before it computes anything."""

from __future__ import annotations

from pathlib import Path

from tartan.errors import UserError
from tartan.settings import Text, check


def output_file(value: str) -> Path:
    """Return the file of the option `output`, after checking that it can be written.

    Raises:
        UserError: it is no text, is a folder, or its folder does not exist.
    """
    check(value, Text, "output")
    path = Path(value).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        why = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise UserError(f"output={value}: {why}; name a file")
    return path
