"""Writes files such that an interrupted write leaves the previous content in place."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tartan.errors import UserError
from tartan.files.checksum import sha256_of, sidecar_of

_NOTHING = 1 << 20
"""Free space below which a disk counts as full [bytes]."""
_UNWRITABLE = (errno.EROFS, errno.EFBIG)
"""Error codes of a read-only file system and of a file beyond its size limit (ulimit -f)."""


@contextmanager
def disk_advice(folder: Path) -> Iterator[None]:
    """Turn a disk that is full or cannot be written into a message that says what to do.

    Raises:
        UserError: the disk of `folder` is full, or cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise UserError(
                f"cannot write to {folder} ({error.strerror}); once files can be written there, "
                "run the same command to continue from where it was"
            ) from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(
            f"the disk of {folder} is full; free some space and run the same command to "
            "continue from where it was"
        ) from error


def write_durably(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it, and rename it to `path`.

    An interruption at any point leaves `path` as it was before.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.part")
    scratch.unlink(missing_ok=True)  # a link, through which another file would be written
    try:
        write(scratch)
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
    except RuntimeError as error:  # what torch makes of any trouble with a file
        free = shutil.disk_usage(path.parent).free
        scratch.unlink(missing_ok=True)
        if free < _NOTHING:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path)) from error
        raise
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    scratch.replace(path)
    flush_folder(path.parent)


def write_text_durably(path: Path, text: str) -> None:
    """Write a file of UTF-8 text with `write_durably`."""
    write_durably(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def write_with_checksum(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file durably, and its SHA-256 to `PATH.sha256`.

    A file without the checksum does not count.
    """
    write_durably(path, write)
    note_checksum(path)


def note_checksum(path: Path) -> None:
    """Store a file's SHA-256 beside it, durably."""
    write_text_durably(sidecar_of(path), f"{sha256_of(path)}  {path.name}\n")


def remove(path: Path) -> None:
    """Remove a file and its checksum, the checksum first: a file without one does not count."""
    sidecar_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Flush a folder, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
