"""Measures the peak memory of processes: their own, and pages of mapped files."""

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
        largest: peak of one process, without pages of files [bytes].
        all: peak of the process and its descendants together, likewise [bytes].
        mapped: peak of the pages of files in one process, which the system can take back [bytes].
    """

    largest: int = 0
    all: int = 0
    mapped: int = 0


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
        try:
            memory = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        mapped = getattr(memory, "shared", 0)  # not all systems tell
        own.append(memory.rss - mapped)
        peak.mapped = max(peak.mapped, mapped)
    peak.largest = max([peak.largest, *own])
    peak.all = max(peak.all, sum(own))
