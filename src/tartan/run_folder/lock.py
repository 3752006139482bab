"""Lets only one process run in a run folder.

The process holds a lock on the folder itself, which nobody can remove while the folder exists, and
one on a file in it, for file systems that lock only files (NFS).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tartan.errors import UserError
from tartan.files import check_written_folder
from tartan.methods.launch import is_main_process
from tartan.run_folder.advice import folder_option

LOCK = "run.lock"
"""Lock file in a run folder."""
_LOCK_TIMEOUT_S = 1.0
"""Time to wait for a lock [s]: longer than `is_running` holds it, which is no run."""


class BusyError(UserError):
    """Raised where another process is running in the folder."""


def is_running(folder: Path) -> bool:
    """Return whether a process is running in the folder, as far as its locks tell.

    Raises:
        OSError: the lock file cannot be opened.
    """
    if not folder.is_dir():
        return False
    try:
        with _folder_locked(folder, 0):
            if not (folder / LOCK).is_file() or (folder / LOCK).is_symlink():
                return False
            with FileLock(folder / LOCK).acquire(timeout=0):
                return False
    except Timeout:
        return True


@contextmanager
def exclusive_run(folder: Path) -> Iterator[None]:
    """Lock the run folder until the process ends, even if it is killed.

    Other processes of the same distributed run take no lock; the main process holds it for them.

    Raises:
        BusyError: another process is running there.
        UserError: the folder cannot be written, or a link in it leads elsewhere.
    """
    if not is_main_process():
        yield
        return
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_written_folder(folder)
            held.enter_context(FileLock(folder / LOCK).acquire(timeout=_LOCK_TIMEOUT_S))
            held.enter_context(_folder_locked(folder, _LOCK_TIMEOUT_S))
        except Timeout as error:
            raise BusyError(
                f"another process is running in {folder}; wait for it, or name another folder: "
                f"{folder_option()}"
            ) from error
        except OSError as error:
            raise UserError(
                f"cannot write to {folder} ({error.strerror}); name another folder: "
                f"{folder_option()}"
            ) from error
        yield


@contextmanager
def _folder_locked(folder: Path, patience: float) -> Iterator[None]:
    """Lock the folder itself, if its file system can.

    Args:
        folder: the folder.
        patience: time to keep trying [s].

    Raises:
        Timeout: another process holds the lock.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    until = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise Timeout(str(folder)) from error
                time.sleep(0.05)
            except OSError:  # no locks on folders here; the one on the file has to do
                break
        yield
    finally:
        os.close(descriptor)
