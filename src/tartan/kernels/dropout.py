"""Dropout and attention with dropout that are fast on a CPU.

Torch draws 32 bits and more for each element, which can take a fifth of a training step there, and
has no fused attention with dropout: here scores are masked and dropped in place, in both passes.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from tartan.core.device import is_cpu, without_autocast

LEVELS = 2**16  # values of 16 random bits; probabilities are rounded to multiples of 1 / LEVELS


class FastDropout(nn.Dropout):
    """`nn.Dropout` that on a CPU uses 16 random bits for each element, four elements a draw."""

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`, of any shape, with elements zeroed with probability `p` in training."""
        if not self.training:
            return input
        if not fast_dropout_applies(input.device, self.p):
            return F.dropout(input, self.p)
        return input * dropout_factors(input.shape, self.p, input.dtype)


def replace_dropout(module: nn.Module, kind: type[nn.Dropout]) -> None:
    """Replace every `nn.Dropout` and `FastDropout` inside `module` by a `kind`, in place."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Dropout) and type(child) in (nn.Dropout, FastDropout):
                setattr(parent, name, kind(child.p).train(child.training))


def fast_dropout_applies(device: torch.device, p: float) -> bool:
    """Return whether `dropout_factors` are drawn for probability `p`: on a CPU, unless 0 or 1."""
    return is_cpu(device) and round(p * LEVELS) not in (0, LEVELS)


def dropout_factors(shape: Sequence[int], p: float, dtype: torch.dtype) -> Tensor:
    """Draw factors on the CPU: 0 with probability `p`, otherwise the one that makes the mean 1."""
    dropped, count = round(p * LEVELS), math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(tuple(shape))
    kept = bits.ge(dropped - LEVELS // 2)
    return kept.to(dtype).mul_(LEVELS / (LEVELS - dropped))


def dropout_attention(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, factors: Tensor, scale: float
) -> Tensor:
    """Return `(factors * softmax(scale * query @ key^T)) @ value`, computed in `factors`' type.

    `query`, `key` and `value` are `(examples, heads, positions, size)`, `factors` are dropout's on
    attention weights, `(examples, heads, positions, positions)`, to which `allowed` is broadcast,
    True where a position may be attended to. The result is `(examples, positions, heads, size)`.
    """
    with without_autocast(query.device):
        bias = None
        if allowed is not None:
            # not -inf: padding far from a text may attend to nothing in a sliding window
            least = torch.finfo(factors.dtype).min
            bias = torch.zeros_like(allowed, dtype=factors.dtype).masked_fill_(~allowed, least)
        attended: Tensor = _InPlaceAttention.apply(query, key, value, bias, factors, scale)  # type: ignore[no-untyped-call]
        return attended


class _InPlaceAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        factors: Tensor,
        scale: float,
    ) -> Tensor:
        dtype, shape = factors.dtype, query.shape
        queries, keys, values = (_by_head(t, dtype) for t in (query, key, value))
        queries = queries * scale
        scores = torch.bmm(queries, keys.transpose(1, 2))
        if bias is not None:
            scores.view(factors.shape).add_(bias)
        weights = torch.softmax(scores, dim=-1)
        factors = factors.flatten(0, 1)
        dropped = torch.mul(weights, factors, out=scores)
        ctx.save_for_backward(queries, keys, values, weights, dropped, factors)
        ctx.scale, ctx.dtype, ctx.shape = scale, query.dtype, shape
        return _by_position(torch.bmm(dropped, values), shape, query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, weights, dropped, factors = ctx.saved_tensors
        grad_output = _by_head(gradient.transpose(1, 2), weights.dtype)
        grad_weights = torch.bmm(grad_output, values.transpose(1, 2)).mul_(factors)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        grad_inputs = (
            torch.bmm(grad_scores, keys).mul_(ctx.scale),
            torch.bmm(grad_scores.transpose(1, 2), queries),
            torch.bmm(dropped.transpose(1, 2), grad_output),
        )
        laid_out = (
            _by_position(each, ctx.shape, ctx.dtype).transpose(1, 2) for each in grad_inputs
        )
        return *laid_out, None, None, None


def _by_head(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `(examples, heads, positions, size)` as `(examples * heads, positions, size)`."""
    wide = tensor.to(dtype, memory_format=torch.contiguous_format)
    return wide.contiguous().flatten(0, 1)


def _by_position(tensor: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Return `(examples * heads, ...)` as contiguous `(examples, positions, heads, size)`."""
    examples, heads, positions, size = shape
    laid_out = tensor.new_empty((examples, positions, heads, size), dtype=dtype)
    return laid_out.copy_(tensor.view(shape).transpose(1, 2))
