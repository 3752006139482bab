"""Measures time on a device, and peaks of its memory or the process's."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile


def now(device: torch.device) -> float:
    """Return the time after all work queued on the device is finished [s]."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


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
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
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


def peak_of_device(device: torch.device) -> int:
    """Return the peak of a GPU's tensors, or on a CPU of this process's main memory [bytes]."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Return the peak of tensors that `run` allocates, beyond those there before it [bytes]."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    held = peak = 0
    for event in profiler.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
