"""Lines of a UTF-8 file, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from src.errors import UserError

_MARK = "\ufeff"
_ZIP = b"PK\x03\x04"


def is_gzipped(path: Path) -> bool:
    """Whether the file's name says so."""
    return path.suffix.lower() == ".gz"


def text_lines(path: Path, *, marked: bool = False) -> Iterator[tuple[int, str]]:
    """Lines with their ends, counted from 1.

    Args:
        marked: whether a byte order mark at the file's beginning is left out; otherwise it is an
            error.

    Raises:
        UserError: the file cannot be opened or unpacked, or is not UTF-8 text; names the line.
    """
    number = 0
    try:
        with gzip.open(path) if is_gzipped(path) else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = _decoded(raw, path, number)
                if number == 1 and line.startswith(_MARK):
                    if not marked:
                        raise UserError(
                            f"{path}, line 1: begins with a byte order mark; save the file as "
                            "UTF-8 without one"
                        )
                    line = line.removeprefix(_MARK)
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be read: {reason} (line {number + 1})") from error


def _decoded(raw: bytes, path: Path, number: int) -> str:
    if number == 1 and raw.startswith(_ZIP):
        raise UserError(
            f"{path} is no text but an archive, as Excel's .xlsx is; save it as CSV (UTF-8)"
        )
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}, line {number}: not UTF-8; convert the file first") from error
    if "\0" in line:
        raise UserError(
            f"{path}, line {number}: holds a null character, as UTF-16 files do; save the file as "
            "UTF-8"
        )
    return line
