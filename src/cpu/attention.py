"""Attention with dropout on a CPU, where torch has no fused kernel for it."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from src.cpu.dropout import drawn_factors, draws_cheaply
from src.cpu.dropped_attention import dropped_attention, has_tangent
from src.cpu.packed_attention import Packing
from src.cuda.kernels import usable_kernels
from src.cuda.packed_row import PackedRow

IMPLEMENTATION = "tartan"
"""What the implementation is called in a model's configuration."""
_PLAIN = {"is_causal", "output_attentions", "sliding_window", "deterministic"}
"""Arguments that change nothing where the mask, if there is one, is given."""


def use_cheap_attention(body: PreTrainedModel) -> None:
    """Let a body that computes attention by torch's function compute it by `attention`.

    Bodies with an attention of their own stay.
    """
    if body.config._attn_implementation == _TORCHS and body._can_set_attn_implementation():
        body.set_attn_implementation(IMPLEMENTATION)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    packing: Packing | PackedRow | None = None,
    **further: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute the same as Transformers' `sdpa`, in half the time with dropout on a CPU.

    Torch then computes all in float32 by plain matrix products, and most of it is drawing random
    numbers. Here the products are the same (`dropped_attention`) and the draws are those of
    `CheapDropout`. Without dropout torch's fused kernel has a backward pass that is four times
    slower in 16 bits than in float32 (up to 128 positions), so that it gets float32. Otherwise this
    is Transformers' own.

    Args:
        module: the layer that attends.
        query: `(examples, heads, positions, size)`, as are `key` and `value`.
        attention_mask: True where a position may be attended to, or to be added to the scores;
            broadcast to `(examples, heads, positions, positions)`.
        packing: where the texts are in a packed row, each of which attends to itself only; then
            there is one example, and `attention_mask` does not matter. On a GPU a `PackedRow`; what
            it has no kernel for (forward derivatives, single precision) is computed by blocks.

    Returns:
        `(examples, positions, heads, size)`, and None for the weights.
    """
    if packing is not None:
        window = further.pop("sliding_window", None)  # half of it, the token itself included
        if isinstance(packing, PackedRow):
            usable = () if has_tangent(query) else usable_kernels()
            kernel = packing.kernel(query, dropout, usable)
            if kernel is not None:
                found = packing.attend(
                    kernel, query, key, value, dropout=dropout, scale=scaling, window=window
                )
                return found, None
            packing.used = True
            packing = Packing(packing.lengths, query.device)
        own = partial(_of_block, module, dropout=dropout, scaling=scaling, **further)
        return packing.attend(own, query, key, value, window), None
    known = all(further[name] is None for name in further.keys() - _PLAIN)
    if attention_mask is None:
        masked_as_usual = not getattr(module, "is_causal", True)
    else:
        masked_as_usual = attention_mask.dtype == torch.bool
    trains = query.device.type == "cpu" and torch.is_grad_enabled()
    if trains and not dropout and query.dtype in (torch.bfloat16, torch.float16):
        if attention_mask is not None and attention_mask.dtype == query.dtype:
            attention_mask = attention_mask.float()
        with torch.autocast("cpu", enabled=False):
            found, weights = _torchs(
                module, query.float(), key.float(), value.float(), attention_mask,
                scaling=scaling, **further,
            )  # fmt: skip
        return found.to(query.dtype), weights
    usual = known and masked_as_usual and query.shape == key.shape == value.shape
    if not (draws_cheaply(query.device, dropout) and usual):
        return _torchs(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **further
        )
    wide = torch.promote_types(query.dtype, torch.float32)
    factors = drawn_factors((*query.shape[:3], key.shape[2]), dropout, wide)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return dropped_attention(query, key, value, attention_mask, factors, scale), None


def _of_block(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None,
    **options: Any,
) -> Tensor:
    return attention(module, query, key, value, allowed, **options)[0]


def _torchs(*arguments: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    found: tuple[Tensor, Tensor | None] = AttentionInterface()[_TORCHS](*arguments, **options)
    return found


_TORCHS = "sdpa"

AttentionInterface.register(IMPLEMENTATION, attention)
AttentionMaskInterface.register(IMPLEMENTATION, AttentionMaskInterface()[_TORCHS])
