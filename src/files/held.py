"""A lock that lasts as long as its process, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from src.errors import UserError


@contextmanager
def held(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file `path`, which stays where it is.

    Args:
        busy: what to say where another process holds it.

    Raises:
        UserError: another process does, or the folder cannot be written.
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
