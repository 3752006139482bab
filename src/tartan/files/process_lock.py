"""Locks a file for as long as the process lives, even if it is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tartan.errors import UserError


@contextmanager
def process_lock(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file `path`; the file stays there afterwards.

    The holder may remove it: whoever waits then locks a new file, not the one without a name.

    Args:
        path: the lock file.
        busy: message for when another process holds the lock.

    Raises:
        UserError: another process holds the lock, or the folder cannot be written.
    """
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0.1)
    except Timeout as error:
        raise UserError(busy) from error
    except OSError as error:
        raise UserError(f"cannot write to {path.parent} ({error.strerror})") from error
    try:
        yield
    finally:
        lock.release()
