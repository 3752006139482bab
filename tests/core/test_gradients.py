"""Inner products, cosines and sums of gradients that are lists of tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tartan.core.body import SharedBody
from tartan.core.gradients import combine_, cosine_of, dot
from tests.conftest import DEVICE

SHAPES = [(3, 4), (5,), (2, 2, 2)]


def random_gradient(seed, missing=()):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    return [
        None if index in missing else torch.randn(shape, generator=generator, dtype=torch.float64)
        for index, shape in enumerate(SHAPES)
    ]


def as_vector(gradient):
    zeros = (torch.zeros(shape, dtype=torch.float64) for shape in SHAPES)
    filled = [z if g is None else g for g, z in zip(gradient, zeros, strict=True)]
    return torch.cat([each.reshape(-1) for each in filled])


@pytest.mark.parametrize("missing", [(), (0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("on_cpu", [True, False])
def test_dot_is_that_of_the_long_vectors_with_missing_entries_zero(missing, on_cpu, monkeypatch):
    monkeypatch.setattr("tartan.core.gradients.is_cpu", lambda device: on_cpu)
    monkeypatch.setattr("tartan.core.gradients.CHUNK", 15)
    left, right = random_gradient(0), random_gradient(1, missing)
    expected = as_vector(left) @ as_vector(right)
    torch.testing.assert_close(dot(left, right, torch.float64), expected)
    squared = as_vector(right).square().sum()
    torch.testing.assert_close(dot(right, right, torch.float64), squared)


def test_dot_accumulates_half_precision_in_float32_and_takes_transposed_gradients():
    left = [torch.full((4096,), 1.0, dtype=torch.bfloat16)]
    result = dot(left, left)
    assert result.dtype == torch.float32
    assert float(result) == 4096
    tensor = torch.arange(6.0).reshape(2, 3)
    assert float(dot([tensor.t()], [torch.ones(3, 2)])) == 15


def test_cosine_with_a_zero_gradient_is_zero_and_any_scale_works():
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    assert float(cosine_of(zero, zero, one)) == float(cosine_of(zero, zero, zero)) == 0
    small, large = [torch.tensor([1e-12, 2e-12])], [torch.tensor([1e9, 2e9])]
    value = cosine_of(dot(small, large), dot(small, small), dot(large, large))
    assert float(value) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("missing", [[(), (), ()], [(0,), (1,), ()], [(0, 1), (0,), (2,)]])
def test_moving_by_shares_gives_the_weighted_mean(missing):
    weights = [0.0, 2.0, 0.5]
    gradients = [random_gradient(seed, absent) for seed, absent in enumerate(missing)]
    expected = sum(w * as_vector(g) for w, g in zip(weights, gradients, strict=True)) / sum(weights)
    mean, total = gradients[0], weights[0]
    for weight, gradient in zip(weights[1:], gradients[1:], strict=True):
        total += weight
        share = torch.tensor(weight / total, dtype=torch.float64)
        combine_(mean, gradient, share, mean=True)
    torch.testing.assert_close(as_vector(mean), expected)


@pytest.mark.parametrize("mean", [False, True])
def test_a_device_that_must_not_be_waited_for_computes_the_same(mean, monkeypatch):
    """As on an accelerator, where factors stay tensors."""
    results = []
    for waits in (True, False):
        monkeypatch.setattr("tartan.core.gradients.is_cpu", lambda device, w=waits: w)
        total, gradient = random_gradient(0, (0,)), random_gradient(1, (1,))
        left, right = as_vector(total), as_vector(gradient)
        combine_(total, gradient, torch.tensor(0.3, dtype=torch.float64), mean=mean)
        results.append(as_vector(total))
    torch.testing.assert_close(results[0], results[1])
    kept = 0.7 if mean else 1.0
    torch.testing.assert_close(results[0], kept * left + 0.3 * right)


def test_backward_passes_keep_the_types_of_forward_passes_and_add_up():
    """A product in float32 inside of autocast, as attention's is."""
    torch.manual_seed(0)
    left, right = torch.randn(3, 8, 8, requires_grad=True), torch.randn(3, 8, 8)
    (expected,) = torch.autograd.grad(torch.bmm(left, right).square().sum(), left)
    body = SharedBody(nn.Linear(1, 1))
    for _ in range(2):
        loss = torch.bmm(left, right).square().sum()
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            body.backward(loss, [left])
    assert torch.equal(left.grad, 2 * expected)
