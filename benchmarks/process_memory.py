"""Measures the peak memory of processes, without pages of mapped files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

_EVERY_S = 0.05


@dataclass
class PeakMemory:
    """Peaks of memory.

    Attributes:
        largest: peak of one process [bytes].
        all: peak of the process and its descendants together [bytes].
    """

    largest: int = 0
    all: int = 0


@contextmanager
def peak_memory(pid: int | None = None) -> Iterator[PeakMemory]:
    """Sample the memory of a process and its descendants within a `with` block.

    Args:
        pid: id of the process; None for this one.
    """
    process, peak, ended = psutil.Process(pid), PeakMemory(), threading.Event()

    def watch() -> None:
        while True:
            with suppress(psutil.NoSuchProcess):  # it may end between two samples
                _sample(peak, [process, *process.children(recursive=True)])
            if ended.wait(_EVERY_S):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _sample(peak: PeakMemory, processes: list[psutil.Process]) -> None:
    own = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            memory = process.memory_info()
            own.append(memory.rss - getattr(memory, "shared", 0))  # which not all systems tell
    peak.largest = max([peak.largest, *own])
    peak.all = max(peak.all, sum(own))
