"""Compares two computations of the same differentiable function."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def assert_same_derivatives(
    found: torch.Tensor, expected: torch.Tensor, inputs: Sequence[torch.Tensor]
) -> None:
    """Check that float64 values agree, and their gradients in a random direction."""
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-14)
    direction = torch.randn_like(expected)
    theirs = torch.autograd.grad(expected, inputs, direction)
    ours = torch.autograd.grad(found, inputs, direction)
    for own, other in zip(ours, theirs, strict=True):
        assert torch.allclose(own, other, rtol=1e-10, atol=1e-12)
