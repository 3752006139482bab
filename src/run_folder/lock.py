"""One process at a time in a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from src.distributed.identity import is_main_process
from src.errors import UserError

LOCK = "run.lock"
"""The file in a run folder that its process holds."""
_GLANCE_S = 1.0
"""Seconds after which a lock that is still held is a run's, and no glance of `is_held`."""


def is_held(folder: Path) -> bool:
    """Whether a process is running in the folder now, as far as its files tell.

    Raises:
        OSError: the lock's file cannot be opened.
    """
    path = folder / LOCK
    if not path.is_file():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the run folder; the system lets go of it when the process ends, however it ends.

    Further processes of the same run belong to the one that holds it.

    Raises:
        UserError: another process is running there, or the folder cannot be written.
    """
    if not is_main_process():
        yield
        return
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=_GLANCE_S)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(
            f"cannot write to {folder} ({error.strerror}); name another folder: "
            "hydra.run.dir=FOLDER"
        ) from error
    except Timeout as error:
        raise UserError(
            f"another process is running in {folder}; wait for it, or name another folder: "
            "hydra.run.dir=FOLDER"
        ) from error
    try:
        yield
    finally:
        lock.release()
