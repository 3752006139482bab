"""Measures time on a device, with or without waiting for its queued work."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import torch


def now(device: torch.device) -> float:
    """Return the time after all work queued on the device is finished [s]."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class PassClock:
    """Adds up the time spent inside its `with` blocks, without waiting for the device.

    On CUDA it uses events, whose times the device records; elsewhere the host's clock, which is
    right only for a CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._began = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def __enter__(self) -> Self:
        if self._cuda:
            events = (_event(), _event())
            events[0].record()
            self._events.append(events)
        else:
            self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._cuda:
            self._events[-1][1].record()
        else:
            self._seconds += time.perf_counter() - self._began

    def seconds(self) -> float:
        """Return the total so far [s]; on CUDA this waits for the device."""
        if self._events:
            torch.cuda.synchronize()
            self._seconds += sum(began.elapsed_time(ended) for began, ended in self._events) / 1000
            self._events.clear()
        return self._seconds
