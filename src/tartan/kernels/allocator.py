"""Keeps the memory of freed CPU tensors in the process, for later tensors to reuse."""

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # parameter numbers of glibc's `mallopt`


def keep_freed_memory() -> bool:
    """Have this process keep freed memory of large tensors; return whether its allocator can.

    By default glibc maps and unmaps the memory of each large tensor, whose page faults take a
    seventh of a META-TARTAN step on two cores. Does nothing where the environment configures the
    allocator, or it is not glibc's.
    """
    if not sys.platform.startswith("linux") or any(n.startswith("MALLOC_") for n in os.environ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))
