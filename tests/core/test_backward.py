"""Backward passes inside of autocast."""

from __future__ import annotations

import torch

from tartan.core.backward import backward


def pass_with_a_wide_product() -> tuple[torch.Tensor, torch.Tensor]:
    """A product in float32 inside of autocast, as attention's is: `(loss, left factor)`."""
    torch.manual_seed(0)
    left = torch.randn(3, 8, 8, requires_grad=True)
    right = torch.randn(3, 8, 8)
    with torch.autocast("cpu", enabled=False):
        return torch.bmm(left, right).square().sum(), left


def test_products_keep_the_type_of_their_forward_pass():
    loss, left = pass_with_a_wide_product()
    loss.backward()
    expected, left.grad = left.grad, None
    loss, left = pass_with_a_wide_product()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        backward(loss)
    assert torch.equal(left.grad, expected)


def test_only_what_is_asked_for_gets_a_gradient_and_they_add_up():
    first, second = (torch.full((2,), 3.0, requires_grad=True) for _ in range(2))
    loss = (first * second).sum()
    backward(loss, [first], retain_graph=True)
    assert second.grad is None
    backward(loss, [first, second])
    assert torch.equal(first.grad, torch.full((2,), 6.0))
    assert torch.equal(second.grad, torch.full((2,), 3.0))
