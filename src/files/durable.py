"""Files that are whole or not there: a temporary name, a flush, a rename, and a checksum beside."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from src.errors import UserError
from src.files.checksum import sha256_of, sidecar_of

_NOTHING = 1 << 20
"""Bytes of free space below which a disk counts as full."""
_UNWRITABLE = (errno.EROFS, errno.EFBIG)
"""A read-only file system, and a file beyond the limit (ulimit -f, or the file system's own)."""


@contextmanager
def disk_advice(folder: Path) -> Iterator[None]:
    """Turn a full disk, or one that takes no files any more, into a line that says what to do.

    Raises:
        UserError: the disk of `folder` is full, or cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise UserError(
                f"cannot write to {folder} ({error.strerror}); once files can be written there, "
                "the same command goes on from the last checkpoint"
            ) from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(
            f"the disk of {folder} is full; free some space and run the same command again: it "
            "goes on from the last checkpoint"
        ) from error


def write_durably(path: Path, write: Callable[[Path], object]) -> None:
    """Have `write` fill a file beside `path`, flush it to the disk, and give it its name.

    Whatever stops this leaves `path` as it was before.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.part")
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
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    scratch.replace(path)
    flush_folder(path.parent)


def write_with_checksum(path: Path, write: Callable[[Path], object]) -> None:
    """`write_durably`, with the SHA-256 in `PATH.sha256`; the file counts once both are there."""
    write_durably(path, write)
    digest = sha256_of(path)
    write_durably(sidecar_of(path), lambda scratch: scratch.write_text(f"{digest}  {path.name}\n"))


def remove(path: Path) -> None:
    """Remove a file and its checksum, the checksum first: what is half removed does not count."""
    sidecar_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make a rename outlive a power cut, where the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
