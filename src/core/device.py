"""Tells whether a device is the CPU: on others, a branch on a tensor waits for all queued work."""

from __future__ import annotations

import torch


def is_cpu(device: torch.device) -> bool:
    """Return whether the device is the CPU, on which reading a tensor waits for nothing."""
    return device.type == "cpu"


def is_on_cpu(accelerator: str) -> bool:
    """Return whether Lightning's `accelerator` is the CPU; `auto` takes a GPU if there is one."""
    return accelerator == "cpu" or not torch.accelerator.is_available()
