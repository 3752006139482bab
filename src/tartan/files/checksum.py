"""Computes, stores and compares SHA-256 checksums of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tartan.errors import UserError


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 as 64 hexadecimal digits.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:  # which elsewhere would count as trouble with a file that is written
        raise UserError(f"{path} cannot be read ({error.strerror})") from error


def sidecar_of(path: Path) -> Path:
    """Return the file that holds a file's checksum: `PATH.sha256` beside it."""
    return path.with_name(f"{path.name}.sha256")


def is_whole(path: Path) -> bool:
    """Return whether the file has the checksum that is stored beside it."""
    sidecar = sidecar_of(path)
    if not path.is_file() or not sidecar.is_file():
        return False
    return sidecar.read_bytes().split(maxsplit=1)[:1] == [sha256_of(path).encode()]


def check_is_file(path: Path, what: str = "") -> None:
    """Check that `path` is a file.

    Args:
        path: the file.
        what: words for the file in the message, before its name.

    Raises:
        UserError: it does not exist, is a folder, or is neither, as a pipe is.
    """
    named = f"{what} {path}".strip()
    if path.is_dir():
        raise UserError(f"{named} is a folder; name a file in it")
    if not path.exists():
        raise UserError(f"{named} does not exist")
    if not path.is_file():
        raise UserError(
            f"{named} is no regular file; write it to one (python -m src.predict reads standard "
            "input with input=-)"
        )


def check_sha256(path: Path, expected: str, advice: str = "fetch it again") -> None:
    """Check a file against its published checksum.

    Args:
        path: the file.
        expected: its SHA-256.
        advice: what to do if it differs, for the message.

    Raises:
        UserError: the file is missing or differs.
    """
    check_is_file(path)
    found = sha256_of(path)
    if found != expected:
        raise UserError(
            f"{path} is not the published file: its SHA-256 is {found[:12]}..., "
            f"expected {expected[:12]}...; {advice}"
        )
