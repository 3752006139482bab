"""Measures peaks of memory: of a call's tensors, of the device, and of the process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


def peak_of_process() -> int:
    """Return the peak of this process's main memory [bytes]."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def peak_of_device(device: torch.device) -> int:
    """Return the peak of a GPU's tensors, or on a CPU of the process [bytes]."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return peak_of_process()


def parameter_bytes(module: nn.Module) -> int:
    """Return the size of a module's parameters [bytes]."""
    return sum(p.numel() * p.element_size() for p in module.parameters())


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
