"""Keeping memory that tensors on the CPU have left, instead of giving it back to the system."""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""Parameters of glibc's `mallopt`."""


def keep_freed_memory() -> bool:
    """Let this process reuse the memory of large tensors; whether its allocator can.

    By default glibc maps each large tensor anew and unmaps it when it is gone, so that every step
    pays for page faults again: a seventh of a META-TARTAN step on two virtual cores. The process
    holds its peak from then on. Settings that are in the environment (`MALLOC_...`) stay.
    """
    if not sys.platform.startswith("linux") or any(n.startswith("MALLOC_") for n in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))
