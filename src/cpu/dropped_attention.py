"""Attention with dropout, and its gradient, by as few passes through memory as plain kernels take.

Beside the products, the time of short texts' attention is that of reading and writing the matrices
of scores. Composed of differentiable operations, masking and dropping copy them on the way there
and on the way back; here both are done in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable


def dropped_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor | None,
    factors: Tensor,
    scale: float,
) -> Tensor:
    """`(factors * softmax(scale * query @ key^T)) @ value`, computed in the type of `factors`.

    Args:
        query: `(examples, heads, positions, size)`, as are `key` and `value`.
        allowed: True where a position may be attended to; broadcast to `(examples, heads,
            positions, positions)`.
        factors: what each weight is multiplied by, `(examples, heads, positions, positions)`.
        scale: of the scores.

    Returns:
        `(examples, positions, heads, size)`, contiguous, of the query's type.
    """
    with torch.autocast(query.device.type, enabled=False):
        added = None if allowed is None else _added(allowed, factors.dtype)
        if any(has_tangent(t) for t in (query, key, value)):
            return _composed(query, key, value, added, factors, scale)
        attended: Tensor = _Attention.apply(query, key, value, added, factors, scale)  # type: ignore[no-untyped-call]
        return attended


def has_tangent(tensor: Tensor) -> bool:
    """Whether a forward-mode derivative of `tensor` is taken."""
    tangent = forward_ad.unpack_dual(tensor).tangent  # type: ignore[no-untyped-call]
    return tangent is not None


def _added(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Return what is added to the scores to keep others from being attended to."""
    # not -inf: padding far from a text may attend to nothing in a sliding window
    least = torch.finfo(dtype).min
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, least)


def _composed(
    query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, factors: Tensor, scale: float
) -> Tensor:
    """The same of operations that torch differentiates in every mode."""
    wide = factors.dtype
    scores = torch.matmul(query.to(wide) * scale, key.to(wide).transpose(2, 3))
    if added is not None:
        scores = scores + added
    weights = torch.softmax(scores, dim=-1) * factors
    return torch.matmul(weights, value.to(wide)).to(query.dtype).transpose(1, 2).contiguous()


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        added: Tensor | None,
        factors: Tensor,
        scale: float,
    ) -> Tensor:
        wide, shape = factors.dtype, query.shape
        rows, columns, contents = (_by_head(t, wide) for t in (query, key, value))
        rows = rows * scale
        scores = torch.bmm(rows, columns.transpose(1, 2))
        if added is not None:
            scores.view(factors.shape).add_(added)
        weights = torch.softmax(scores, dim=-1)
        factors = factors.flatten(0, 1)
        dropped = torch.mul(weights, factors, out=scores)
        ctx.save_for_backward(rows, columns, contents, weights, dropped, factors)
        ctx.scale, ctx.dtype, ctx.shape = scale, query.dtype, shape
        return _by_position(torch.bmm(dropped, contents), shape, query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, contents, weights, dropped, factors = ctx.saved_tensors
        outer = _by_head(gradient.transpose(1, 2), weights.dtype)
        of_weights = torch.bmm(outer, contents.transpose(1, 2)).mul_(factors)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        found = (
            torch.bmm(of_scores, columns).mul_(ctx.scale),
            torch.bmm(of_scores.transpose(1, 2), rows),
            torch.bmm(dropped.transpose(1, 2), outer),
        )
        laid_out = (_by_position(each, ctx.shape, ctx.dtype).transpose(1, 2) for each in found)
        return *laid_out, None, None, None


def _by_head(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """`(examples, heads, positions, size)` as contiguous `(examples * heads, positions, size)`."""
    return tensor.to(dtype).contiguous().flatten(0, 1)


def _by_position(tensor: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """`(examples * heads, ...)` as contiguous `(examples, positions, heads, size)`.

    The layout of what layers compute, so that nothing has to be rearranged on the way back.
    """
    examples, heads, positions, size = shape
    laid_out = tensor.new_empty((examples, positions, heads, size), dtype=dtype)
    return laid_out.copy_(tensor.view(shape).transpose(1, 2))
