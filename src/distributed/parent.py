"""Ends a process with the one that started it, however that ends."""

from __future__ import annotations

import os
import threading
import time

_INTERVAL_S = 0.2
"""Time between two looks at the process that started this one [s]."""


def end_with(process: int) -> None:
    """End this process, with exit code 1, as soon as the one that started it is gone.

    Otherwise one whose parent is killed would wait for others that never come: for half an hour
    where the processes have not found each other yet.

    Args:
        process: number of the process that started this one.
    """
    threading.Thread(target=_follow, args=(process,), daemon=True).start()


def _follow(process: int) -> None:
    while os.getppid() == process:
        time.sleep(_INTERVAL_S)
    os._exit(1)
