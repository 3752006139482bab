"""An attention implementation that is fast with dropout on a CPU and in packed rows."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from tartan.core.device import is_cpu
from tartan.kernels.dropout import (
    FastDropout,
    dropout_attention,
    dropout_factors,
    fast_dropout_applies,
    replace_dropout,
)
from tartan.kernels.packed_row import PackedRow

IMPLEMENTATION = "tartan"
"""Name of the implementation in a model's configuration (`attn_implementation`)."""
_SDPA = "sdpa"
_IGNORED = {"is_causal", "output_attentions", "sliding_window", "deterministic"}
"""Arguments without effect on the result, because the attention mask already expresses them."""


def use_kernels(module: nn.Module) -> None:
    """Replace dropout and the attention of Transformers' models inside `module`, in place.

    Parameters, their names and the function that is computed stay the same; on a CPU random draws
    differ from torch's. On CUDA, torch's attention is no longer cuDNN's, which builds a plan for
    each new shape.
    """
    if torch.cuda.is_available():
        torch.backends.cuda.enable_cudnn_sdp(False)
    replace_dropout(module, FastDropout)
    for model in module.modules():
        if isinstance(model, PreTrainedModel):
            use_tartan_attention(model)


def use_tartan_attention(body: PreTrainedModel) -> None:
    """Switch a body from `sdpa` to `attention`, if its class can; leave other implementations."""
    if body.config._attn_implementation == _SDPA and body._can_set_attn_implementation():
        body.set_attn_implementation(IMPLEMENTATION)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    packing: PackedRow | None = None,
    **further: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute what Transformers' `sdpa` does, in half the time with dropout on a CPU.

    Torch has no fused kernel with dropout on a CPU; `dropout_attention` computes the same matrix
    products with the random numbers of `FastDropout`. Without dropout, the backward pass of torch's
    fused kernel takes four times as long in 16 bits as in float32 (up to 128 positions), so
    training in 16 bits calls it in float32. All other cases are left to `sdpa`.

    `query`, `key` and `value` are `(examples, heads, positions, size)`, the attended values
    `(examples, positions, heads, size)`. The mask is True where a position may be attended to, or
    floats that are added to the scores. In a row with `packing`, one example, each text attends to
    itself only, and the mask is ignored. `further` are other arguments that Transformers passes.
    """
    if packing is not None:
        window = further.pop("sliding_window", None)  # one side of it, the token itself included
        in_block = partial(attention, module, dropout=dropout, **further)
        return packing.attend(
            lambda *inputs: in_block(*inputs)[0], query, key, value,
            dropout=dropout, scale=further.get("scaling"), window=window,
        ), None  # fmt: skip
    scale = further.get("scaling")
    if (
        fast_dropout_applies(query.device, dropout)
        and query.shape == key.shape == value.shape
        and _is_plain(module, attention_mask, further)
    ):
        dtype = torch.promote_types(query.dtype, torch.float32)
        factors = dropout_factors((*query.shape[:3], key.shape[2]), dropout, dtype)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return dropout_attention(query, key, value, attention_mask, factors, scale), None
    sdpa = partial(AttentionInterface()[_SDPA], module, **further)
    half = query.dtype in (torch.bfloat16, torch.float16)
    attended: tuple[Tensor, Tensor | None]
    if dropout or not half or not is_cpu(query.device) or not torch.is_grad_enabled():
        attended = sdpa(query, key, value, attention_mask, dropout=dropout)
        return attended
    if attention_mask is not None and attention_mask.dtype == query.dtype:
        attention_mask = attention_mask.float()
    with torch.autocast("cpu", enabled=False):
        attended = sdpa(query.float(), key.float(), value.float(), attention_mask)
    return attended[0].to(query.dtype), attended[1]


def _is_plain(module: nn.Module, mask: Tensor | None, further: dict[str, Any]) -> bool:
    """Return whether a boolean mask, or none, and no further argument say what is attended to."""
    plain = not getattr(module, "is_causal", True) if mask is None else mask.dtype == torch.bool
    others = further.keys() - _IGNORED - {"scaling"}
    return plain and all(further[name] is None for name in others)


def _mask(*arguments: Any, **options: Any) -> Tensor | None:
    """Return the mask for `sdpa`; on a GPU also one that masks nothing, which is not looked up."""
    padding: Tensor | None = options.get("attention_mask")
    if padding is not None and not is_cpu(padding.device):
        options["allow_is_bidirectional_skip"] = False
    mask: Tensor | None = AttentionMaskInterface()[_SDPA](*arguments, **options)
    return mask


AttentionInterface.register(IMPLEMENTATION, attention)
AttentionMaskInterface.register(IMPLEMENTATION, _mask)
