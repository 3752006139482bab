"""Confines mixed precision to passes through the model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch


def autocast_of(precision: str, device: torch.device) -> torch.autocast:
    """Return the context that computes in a precision of Lightning's, without a Trainer."""
    is_mixed = precision.startswith("bf16")
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_mixed)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the types of the operands, inside of a Trainer's mixed precision too.

    Autocast would compute every matrix product in 16 bits: of gradients' inner products, of logits,
    in the solvers of weightings.
    """
    return torch.autocast(device.type, enabled=False)


def present_autocast(device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """Return what enters again, inside of `without_autocast`, the autocast that is on now."""
    kind = device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return nullcontext
    dtype, caches = torch.get_autocast_dtype(kind), torch.is_autocast_cache_enabled()
    return lambda: torch.autocast(kind, dtype=dtype, cache_enabled=caches)
