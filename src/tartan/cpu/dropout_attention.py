"""Attention with dropout, with a backward pass of its own that copies few matrices.

For short texts, attention spends its time on matrix products and on reading and writing matrices of
scores. Built of differentiable operations, masking and dropout copy these matrices in the forward
and the backward pass; here both work in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from tartan.core.mixed_precision import without_autocast


def dropout_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None,
    factors: Tensor,
    scale: float,
) -> Tensor:
    """Return `(factors * softmax(scale * query @ key^T)) @ value`.

    Args:
        query: `(examples, heads, positions, size)`, as are `key` and `value`.
        allowed: True where a position may be attended to; broadcast to `(examples, heads,
            positions, positions)`. None for everywhere.
        factors: dropout's factor on each attention weight, `(examples, heads, positions,
            positions)`; everything is computed in its type.
        scale: factor on the scores.

    Returns:
        `(examples, positions, heads, size)`, contiguous, of the query's type.
    """
    with without_autocast(query.device):
        bias = None if allowed is None else _bias(allowed, factors.dtype)
        if any(has_tangent(t) for t in (query, key, value)):
            return _differentiable_attention(query, key, value, bias, factors, scale)
        attended: Tensor = _InPlaceAttention.apply(query, key, value, bias, factors, scale)  # type: ignore[no-untyped-call]
        return attended


def has_tangent(tensor: Tensor) -> bool:
    """Return whether a forward-mode derivative is computed through `tensor`."""
    tangent = forward_ad.unpack_dual(tensor).tangent  # type: ignore[no-untyped-call]
    return tangent is not None


def _bias(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the summand of the scores that excludes positions that are not `allowed`."""
    # not -inf: padding far from a text may attend to nothing in a sliding window
    least = torch.finfo(dtype).min
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, least)


def _differentiable_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, factors: Tensor, scale: float
) -> Tensor:
    """Compute the same by operations that torch differentiates in every mode."""
    dtype = factors.dtype
    scores = torch.matmul(query.to(dtype) * scale, key.to(dtype).transpose(2, 3))
    if bias is not None:
        scores = scores + bias
    weights = torch.softmax(scores, dim=-1) * factors
    return torch.matmul(weights, value.to(dtype)).to(query.dtype).transpose(1, 2).contiguous()


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
    return tensor.to(dtype).contiguous().flatten(0, 1)


def _by_position(tensor: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Return `(examples * heads, ...)` as contiguous `(examples, positions, heads, size)`.

    Layers compute in this layout, so that the backward pass has nothing to rearrange.
    """
    examples, heads, positions, size = shape
    laid_out = tensor.new_empty((examples, positions, heads, size), dtype=dtype)
    return laid_out.copy_(tensor.view(shape).transpose(1, 2))
