"""Kernels that attend within each text of a packed row on a GPU, and which of them is taken."""

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
"""PyTorch's own, which has no dropout; that of the package flash-attn, which has."""

HALF = (torch.bfloat16, torch.float16)
LARGEST_HEAD = 256
"""Size of the largest attention head that the kernels take; sizes have to be multiples of 8."""


def kernel_for(
    dtype: torch.dtype, dropout: float, head_size: int, usable: Collection[Kernel]
) -> Kernel | None:
    """Return the kernel for such attention; None where there is none.

    Args:
        dtype: type of query, key and value.
        dropout: dropout probability of attention's weights in this pass.
        head_size: size of a head's query, key and value vectors.
        usable: see `usable_kernels`.
    """
    if dtype not in HALF or head_size % 8 or head_size > LARGEST_HEAD:
        return None
    if "varlen_attn" in usable and not dropout:
        return "varlen_attn"
    return "flash_attn" if "flash_attn" in usable else None


@cache
def usable_kernels() -> tuple[Kernel, ...]:
    """Return the kernels that this machine's packages and GPU support (from Ampere on)."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return ()
    if torch.cuda.get_device_capability() < (8, 0):
        return ()
    found = {"varlen_attn": _varlen_attn(), "flash_attn": _flash_attn()}
    return tuple(name for name, function in found.items() if function is not None)  # type: ignore[misc]


def attend(
    kernel: Kernel,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    *,
    dropout: float,
    scale: float | None,
    window: int | None,
) -> Tensor:
    """Attend within texts: `(tokens, heads, size)`, as are `query`, `key` and `value`.

    Args:
        ends: where each text begins, and the last one ends: int32, `(texts + 1,)`.
        longest: text [tokens].
        dropout: of the weights; 0 for `varlen_attn`.
        scale: of the scores; None for one over the root of `size`.
        window: positions so far apart, and farther, do not attend to each other.
    """
    near = (-1, -1) if window is None else (window - 1, window - 1)
    if kernel == "varlen_attn":
        own = {"scale": scale, "window_size": near}
        function = _varlen_attn()
    else:
        own = {"dropout_p": dropout, "softmax_scale": scale, "window_size": near}
        # its gradient of the queries is else added up in whatever order threads come
        own["deterministic"] = True
        function = _flash_attn()
    assert function is not None, "only usable kernels are chosen"
    attended: Tensor = function(query, key, value, ends, ends, longest, longest, **own)
    return attended


@cache
def _varlen_attn() -> Callable[..., Any] | None:
    try:
        module = importlib.import_module("torch.nn.attention.varlen")  # since torch 2.10
    except ImportError:
        return None
    # it says in each call which backend it uses
    logging.getLogger(module.__name__).setLevel(logging.WARNING)
    function: Callable[..., Any] = module.varlen_attn
    known = inspect.signature(function).parameters
    return function if {"scale", "window_size"} <= known.keys() else None  # 2.10 has neither


@cache
def _flash_attn() -> Callable[..., Any] | None:
    try:
        module = importlib.import_module("flash_attn")
    except ImportError:  # also where it was built for another torch
        return None
    function: Callable[..., Any] = module.flash_attn_varlen_func
    return function
