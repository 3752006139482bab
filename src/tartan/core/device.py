"""Tells whether a device is the CPU or a CUDA GPU.

On others than the CPU, a branch on a tensor waits for all queued work.
"""

from __future__ import annotations

import torch


def is_cpu(device: torch.device) -> bool:
    """Return whether the device is the CPU, on which reading a tensor waits for nothing."""
    return device.type == "cpu"


def is_on_cpu(accelerator: str) -> bool:
    """Return whether Lightning's `accelerator` is the CPU; `auto` takes a GPU if there is one."""
    return accelerator == "cpu" or not torch.accelerator.is_available()


def is_on_cuda(accelerator: str) -> bool:
    """Return whether Lightning's `accelerator` is a CUDA GPU, which `auto` and `gpu` take first."""
    return accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
