"""Measures time and memory on a device, and says what to lower when memory runs out."""

from __future__ import annotations

import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from omegaconf import DictConfig

from tartan.errors import UserError

_ON_THE_CPU = ("can't allocate memory", "not enough memory")
"""Parts of the messages of torch's CPU allocator, which has no exception of its own."""


def now(device: torch.device) -> float:
    """Return the time after all work queued on the device is finished [s]."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_of_device(device: torch.device) -> int:
    """Return the peak of a GPU's tensors, or on a CPU of this process's main memory [bytes]."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@contextmanager
def memory_advice(config: DictConfig, option: str, where: str) -> Iterator[None]:
    """Turn running out of memory in `where` into a `UserError` that says to lower `option`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        out_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not out_of_memory and not any(phrase in str(error) for phrase in _ON_THE_CPU):
            raise
        frames = traceback.walk_tb(error.__traceback__)
        if any(frame.f_code.co_name == "validation_step" for frame, _ in frames):
            option = "evaluation_batch_size"  # an evaluation during training
        value, advice = int(config[option]), "gradient_checkpointing=true or a smaller max_length"
        if value > 1:
            advice = f"{option}={value // 2} (it is {value})"
        raise UserError(f"out of memory in {where}; use {advice}") from error
