"""Time: now, once the device is through, and that of a step's passes, without waiting for it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import torch


def now(device: torch.device) -> float:
    """Seconds, after all that the device has been given to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class PassClock:
    """Adds up the time spent inside its `with` blocks.

    On CUDA by events, of which the device itself notes the times; elsewhere by the host's clock,
    which is the device's only on a CPU.
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
        """The sum so far; on CUDA this waits for the device."""
        if self._events:
            torch.cuda.synchronize()
            self._seconds += sum(began.elapsed_time(ended) for began, ended in self._events) / 1000
            self._events.clear()
        return self._seconds
