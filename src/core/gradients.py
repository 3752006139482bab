"""Gradients with respect to the shared body, as lists of tensors that are never concatenated.

A list holds one entry a parameter; `None` (the task does not reach the parameter) counts as zero.
Nothing here reads a number back to the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

Gradient = list[Tensor | None]


def take_gradient(parameters: Iterable[nn.Parameter]) -> Gradient:
    """Move what `backward` accumulated out of `.grad`, leaving `.grad` empty for the next task."""
    gradient: Gradient = []
    for parameter in parameters:
        gradient.append(parameter.grad)
        parameter.grad = None
    return gradient


def put_gradient(parameters: Iterable[nn.Parameter], gradient: Sequence[Tensor | None]) -> None:
    """Hand `gradient` to the optimiser: the inverse of `take_gradient`."""
    for parameter, value in zip(parameters, gradient, strict=True):
        parameter.grad = value


def dot(
    left: Sequence[Tensor | None],
    right: Sequence[Tensor | None],
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Tensor:
    """Inner product over all parameters, a scalar of `dtype` (or wider, if the gradients are).

    `device` is where the zero is, if there is nothing to multiply.

    Accumulated tensor by tensor: 6 times cheaper on a CPU than concatenating first.
    """
    products = [
        _tensor_dot(a, b, dtype)
        for a, b in zip(left, right, strict=True)
        if a is not None and b is not None
    ]
    if not products:
        reference = next((g for g in [*left, *right] if g is not None), None)
        return torch.zeros(
            (), dtype=dtype, device=device if reference is None else reference.device
        )
    return torch.stack(products).sum()


def _tensor_dot(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    dtype = torch.promote_types(a.dtype, dtype)
    # reshape, not view: a gradient may come back with another memory layout than its parameter's.
    return torch.dot(a.reshape(-1).to(dtype), b.reshape(-1).to(dtype))


def cosine(product: Tensor, squared_left: Tensor, squared_right: Tensor) -> Tensor:
    """Cosine from an inner product and two squared norms; 0, not NaN, where a norm is zero.

    `torch.where` rather than an `if`: a branch on a tensor would wait for the device.
    """
    scale = squared_left.sqrt() * squared_right.sqrt()
    zero = scale == 0
    return torch.where(zero, torch.zeros_like(product), product / torch.where(zero, 1.0, scale))


def gramian(gradients: Sequence[Gradient], dtype: torch.dtype = torch.float32) -> Tensor:
    """All inner products `G_ij = <g_i, g_j>`, shape `(tasks, tasks)`, symmetric."""
    count = len(gradients)
    upper = {
        (i, j): dot(gradients[i], gradients[j], dtype)
        for i in range(count)
        for j in range(i, count)
    }
    rows = [torch.stack([upper[min(i, j), max(i, j)] for j in range(count)]) for i in range(count)]
    return torch.stack(rows)


def scale_(gradient: Gradient, factor: Tensor) -> None:
    """Multiply in place by a scalar tensor."""
    present = [g for g in gradient if g is not None]
    if present:
        torch._foreach_mul_(present, factor)


def add_scaled_(total: Gradient, gradient: Gradient, factor: Tensor) -> None:
    """`total += factor * gradient` in place; `gradient` is consumed: its tensors change."""
    scale_(gradient, factor)
    left: list[Tensor] = []
    right: list[Tensor] = []
    for index, (kept, added) in enumerate(zip(total, gradient, strict=True)):
        if added is None:
            continue
        if kept is None:
            total[index] = added
        else:
            left.append(kept)
            right.append(added)
    if left:
        torch._foreach_add_(left, right)
