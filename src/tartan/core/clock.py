"""Measures time on a device, with or without waiting for its queued work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def now(device: torch.device) -> float:
    """Return the time after all work queued on the device is finished [s]."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class PassClock:
    """Adds up the time spent inside its `running` blocks, without waiting for the device.

    On CUDA it uses events, whose times the device records; elsewhere the host's clock, which is
    right only for a CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure what is inside the `with` block."""
        if self._cuda:
            began, ended = _event(), _event()
            began.record()
            self._events.append((began, ended))
        began_at = time.perf_counter()
        try:
            yield
        finally:
            if self._cuda:
                ended.record()
            else:
                self._seconds += time.perf_counter() - began_at

    def seconds(self) -> float:
        """Return the total so far [s]; on CUDA this waits for the device."""
        if self._events:
            torch.cuda.synchronize()
            self._seconds += sum(began.elapsed_time(ended) for began, ended in self._events) / 1000
            self._events.clear()
        return self._seconds
