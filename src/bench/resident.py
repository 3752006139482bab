"""Memory that processes hold: their own, and pages of files that are mapped into them."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from types import TracebackType

import psutil

_EVERY_S = 0.05


@dataclass
class Held:
    """Peaks, in bytes.

    Attributes:
        largest: own memory of one process.
        all: own memory of the process and all that it began, together.
        mapped: pages of files in one process, which the system takes back when it needs them.
    """

    largest: int = 0
    all: int = 0
    mapped: int = 0


class Watch:
    """Watches a process and all that it begins, from `with` to its end."""

    def __init__(self, pid: int | None = None) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.held = Held()

    def __enter__(self) -> Held:
        self._thread.start()
        return self.held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ends between two looks
                self._take([self._process, *self._process.children(recursive=True)])
            if self._over.wait(_EVERY_S):
                return

    def _take(self, processes: list[psutil.Process]) -> None:
        own = []
        for process in processes:
            try:
                memory = process.memory_info()
            except psutil.NoSuchProcess:
                continue
            mapped = getattr(memory, "shared", 0)  # 0 where the system does not tell
            own.append(memory.rss - mapped)
            self.held.mapped = max(self.held.mapped, mapped)
        self.held.largest = max([self.held.largest, *own])
        self.held.all = max(self.held.all, sum(own))
