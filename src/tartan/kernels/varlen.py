"""Kernels for attention within each text of a packed row on a GPU, and the choice among them."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor

Kernel = Literal["varlen_attn", "flash_attn"]  # PyTorch's own has no dropout, flash-attn's has
_PLACES: dict[Kernel, tuple[str, str]] = {
    "varlen_attn": ("torch.nn.attention.varlen", "varlen_attn"),
    "flash_attn": ("flash_attn", "flash_attn_varlen_func"),
}
TYPES = (torch.bfloat16, torch.float16)


def kernel_for(
    dtype: torch.dtype, dropout: float, head_size: int, usable: Collection[Kernel]
) -> Kernel | None:
    """Return the kernel for attention of this kind, or None if no `usable` one supports it."""
    if dtype not in TYPES or head_size % 8 or head_size > 256:
        return None
    if "varlen_attn" in usable and not dropout:
        return "varlen_attn"
    return "flash_attn" if "flash_attn" in usable else None


@cache
def usable_kernels(device: str = "cuda") -> tuple[Kernel, ...]:
    """Return the kernels that the packages and a GPU (`cuda`, Ampere or newer) support."""
    if device != "cuda" or not torch.cuda.is_available() or torch.version.cuda is None:
        return ()
    if torch.cuda.get_device_capability() < (8, 0):
        return ()
    return tuple(kernel for kernel in _PLACES if _function(kernel) is not None)


def within_texts(
    kernel: Kernel,
    inputs: tuple[Tensor, Tensor, Tensor],
    ends: Tensor,
    longest: int,
    *,
    dropout: float,
    scale: float | None,
    window: int | None,
) -> Tensor:
    """Return the output of attention within each text, `(tokens, heads, size)`.

    `inputs` are query, key and value, of the same shape, `ends` the first position of each text,
    then the end of the last one, int32 `(texts + 1,)`. `scale` None is one over the root of `size`;
    positions `window` apart or farther do not attend to each other.
    """
    options: dict[str, Any] = {"window_size": (-1, -1) if window is None else (window - 1,) * 2}
    if kernel == "varlen_attn":
        options |= {"scale": scale}
    else:
        # otherwise the queries' gradient is summed in the order in which threads finish
        options |= {"dropout_p": dropout, "softmax_scale": scale, "deterministic": True}
    function = _function(kernel)
    assert function is not None, "only usable kernels are chosen"
    attended: Tensor = function(*inputs, ends, ends, longest, longest, **options)
    return attended


@cache
def _function(kernel: Kernel) -> Callable[..., Any] | None:
    place, name = _PLACES[kernel]
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(place), name)
    except ImportError:  # also where flash-attn was built for another torch
        return None
    logging.getLogger(place).setLevel(logging.WARNING)  # torch logs its backend at every call
    return function
