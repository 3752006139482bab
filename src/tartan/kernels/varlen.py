"""Kernels for attention within each text of a packed row on a GPU, and the choice among them."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor

Kernel = Literal["varlen_attn", "flash_attn"]
"""PyTorch's own kernel, without dropout, and that of the package flash-attn, with dropout."""
TYPES = (torch.bfloat16, torch.float16)
"""Types of numbers that the kernels support."""


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
    functions = {"varlen_attn": _varlen_attn(), "flash_attn": _flash_attn()}
    return tuple(name for name, function in functions.items() if function is not None)  # type: ignore[misc]


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

    Args:
        kernel: one of `usable_kernels`.
        inputs: query, key and value, `(tokens, heads, size)` each.
        ends: first position of each text, then the end of the last one: int32, `(texts + 1,)`.
        longest: length of the longest text [tokens].
        dropout: dropout probability of attention's weights; 0 for `varlen_attn`.
        scale: factor of the scores; None for one over the root of `size`.
        window: positions this far apart or farther do not attend to each other; None for no window.
    """
    options: dict[str, Any] = {"window_size": (-1, -1) if window is None else (window - 1,) * 2}
    if kernel == "varlen_attn":
        function = _varlen_attn()
        options |= {"scale": scale}
    else:
        function = _flash_attn()
        # otherwise the queries' gradient is summed in the order in which threads finish
        options |= {"dropout_p": dropout, "softmax_scale": scale, "deterministic": True}
    assert function is not None, "only usable kernels are chosen"
    attended: Tensor = function(*inputs, ends, ends, longest, longest, **options)
    return attended


@cache
def _varlen_attn() -> Callable[..., Any] | None:
    try:
        module = importlib.import_module("torch.nn.attention.varlen")
    except ImportError:
        return None
    # it logs its backend at every call
    logging.getLogger(module.__name__).setLevel(logging.WARNING)
    function: Callable[..., Any] = module.varlen_attn
    known = inspect.signature(function).parameters
    return function if {"scale", "window_size"} <= known.keys() else None  # 2.11 or newer


@cache
def _flash_attn() -> Callable[..., Any] | None:
    try:
        module = importlib.import_module("flash_attn")
    except ImportError:  # also where it was built for another torch
        return None
    function: Callable[..., Any] = module.flash_attn_varlen_func
    return function
