"""SHA-256 of files: what was read is what was meant."""

from __future__ import annotations

import hashlib
from pathlib import Path

from src.errors import UserError


def sha256_of(path: Path) -> str:
    """The file's SHA-256 as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sidecar_of(path: Path) -> Path:
    """Return the file that holds the checksum of a file of this project."""
    return path.with_name(f"{path.name}.sha256")


def is_whole(path: Path) -> bool:
    """Return whether the file is the one whose checksum lies beside it."""
    sidecar = sidecar_of(path)
    if not path.is_file() or not sidecar.is_file():
        return False
    return sidecar.read_bytes().split(maxsplit=1)[:1] == [sha256_of(path).encode()]


def note_checksum(path: Path) -> None:
    """Write the checksum of a file beside it, whole or not at all."""
    sidecar = sidecar_of(path)
    scratch = sidecar.with_name(f"{sidecar.name}.part")
    scratch.write_text(f"{sha256_of(path)}  {path.name}\n", encoding="utf-8")
    scratch.replace(sidecar)


def check_is_file(path: Path, what: str = "") -> None:
    """Check that there is a file.

    Args:
        what: what to call it in the message, before its name.

    Raises:
        UserError: there is none, or something else.
    """
    named = f"{what} {path}".strip()
    if path.is_dir():
        raise UserError(f"{named} is a folder; name a file in it")
    if not path.is_file():
        raise UserError(f"{named} does not exist")


def check_sha256(path: Path, expected: str) -> None:
    """Check a file against its published checksum.

    Raises:
        UserError: the file is missing or differs.
    """
    check_is_file(path)
    found = sha256_of(path)
    if found != expected:
        raise UserError(
            f"{path} is not the published file: its SHA-256 is {found[:12]}..., "
            f"expected {expected[:12]}...; fetch it again"
        )
