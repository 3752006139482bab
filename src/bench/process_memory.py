"""Measures the peak memory of processes: their own, and pages of mapped files."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from types import TracebackType

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


class MemoryWatch:
    """Samples the memory of a process and its descendants within a `with` block.

    Args:
        pid: id of the process; None for this one.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peak = PeakMemory()

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self._peak

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end between two samples
                self._sample([self._process, *self._process.children(recursive=True)])
            if self._stop.wait(_EVERY_S):
                return

    def _sample(self, processes: list[psutil.Process]) -> None:
        own = []
        for process in processes:
            try:
                memory = process.memory_info()
            except psutil.NoSuchProcess:
                continue
            mapped = getattr(memory, "shared", 0)  # not all systems tell
            own.append(memory.rss - mapped)
            self._peak.mapped = max(self._peak.mapped, mapped)
        self._peak.largest = max([self._peak.largest, *own])
        self._peak.all = max(self._peak.all, sum(own))
