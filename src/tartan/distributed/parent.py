"""Ends a process with the one that started it, however that ends."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

_INTERVAL_S = 0.2
"""Time between two looks at the process that started this one [s]."""


@cache
def end_with(process: int) -> None:
    """End this process, with exit code 1, as soon as the one that started it is gone.

    A process whose starter was killed would else wait for others that never come: for half an hour
    where the processes have not found each other yet. However often this is called, one thread
    looks.

    Args:
        process: number of the process that started this one.
    """
    threading.Thread(target=_follow, args=(process,), daemon=True).start()


def _follow(process: int) -> None:
    while os.getppid() == process:
        time.sleep(_INTERVAL_S)
    os._exit(1)
