"""Inner products, cosines and sums of gradients that are lists of tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tartan.core.gradients import (
    add_scaled_,
    chunked,
    cosine_of,
    dot,
    move_towards_,
    put_gradient,
    take_gradient,
)
from tests.conftest import DEVICE


def random_gradient(seed, missing=()):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    shapes = [(3, 4), (5,), (2, 2, 2)]
    return [
        None if index in missing else torch.randn(shape, generator=generator, dtype=torch.float64)
        for index, shape in enumerate(shapes)
    ]


def as_vector(gradient):
    shapes = [(3, 4), (5,), (2, 2, 2)]
    return torch.cat(
        [
            (torch.zeros(shape, dtype=torch.float64) if g is None else g).reshape(-1)
            for g, shape in zip(gradient, shapes, strict=True)
        ]
    )


@pytest.mark.parametrize("missing", [(), (0,), (1, 2), (0, 1, 2)])
def test_dot_is_that_of_the_long_vectors_with_missing_entries_zero(missing):
    left, right = random_gradient(0), random_gradient(1, missing)
    expected = as_vector(left) @ as_vector(right)
    torch.testing.assert_close(dot(left, right, torch.float64), expected)


def test_dot_accumulates_half_precision_in_float32():
    left = [torch.full((4096,), 1.0, dtype=torch.bfloat16)]
    result = dot(left, left)
    assert result.dtype == torch.float32
    assert float(result) == 4096


def test_dot_takes_transposed_gradients():
    tensor = torch.arange(6.0).reshape(2, 3)
    assert float(dot([tensor.t()], [torch.ones(3, 2)])) == 15


def test_cosine_with_a_zero_gradient_is_zero():
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    assert float(cosine_of(zero, zero, one)) == 0
    assert float(cosine_of(zero, zero, zero)) == 0


def test_cosine_of_parallel_gradients_is_one_at_any_scale():
    gradient = [torch.tensor([1e-12, 2e-12])]
    scaled = [torch.tensor([1e9, 2e9])]
    value = cosine_of(dot(gradient, scaled), dot(gradient, gradient), dot(scaled, scaled))
    assert float(value) == pytest.approx(1, abs=1e-6)


def test_add_scaled_keeps_what_only_one_side_has():
    total, gradient = random_gradient(0, (0,)), random_gradient(1, (1,))
    expected = as_vector(total) + 0.5 * as_vector(gradient)
    add_scaled_(total, gradient, torch.tensor(0.5, dtype=torch.float64))
    torch.testing.assert_close(as_vector(total), expected)


@pytest.mark.parametrize("missing", [[(), (), ()], [(0,), (1,), ()], [(0, 1), (0,), (2,)]])
def test_moving_by_shares_gives_the_weighted_mean(missing):
    weights = [0.0, 2.0, 0.5]
    gradients = [random_gradient(seed, absent) for seed, absent in enumerate(missing)]
    expected = sum(w * as_vector(g) for w, g in zip(weights, gradients, strict=True)) / sum(weights)
    mean, total = gradients[0], weights[0]
    for weight, gradient in zip(weights[1:], gradients[1:], strict=True):
        total += weight
        move_towards_(mean, gradient, torch.tensor(weight / total, dtype=torch.float64))
    torch.testing.assert_close(as_vector(mean), expected)


@pytest.mark.parametrize("change", [add_scaled_, move_towards_])
def test_a_device_that_must_not_be_waited_for_computes_the_same(change, monkeypatch):
    """As on an accelerator, where factors stay tensors."""
    results = []
    for waits in (True, False):
        monkeypatch.setattr("tartan.core.gradients.is_cpu", lambda device, w=waits: w)
        total, gradient = random_gradient(0, (0,)), random_gradient(1, (1,))
        change(total, gradient, torch.tensor(0.3, dtype=torch.float64))
        results.append(as_vector(total))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("size", [1, 9, 17, 1000])
def test_chunks_hold_every_number_once_and_none_is_too_long(size, monkeypatch):
    left, right = random_gradient(0), random_gradient(1)
    pairs = [(a.reshape(-1), b.reshape(-1)) for a, b in zip(left, right, strict=True)]
    chunks = list(chunked(pairs, size))
    for side, gradient in ((0, left), (1, right)):
        assert torch.equal(torch.cat([chunk[side] for chunk in chunks]), as_vector(gradient))
    longest = max(a.numel() for a, _ in pairs)
    assert all(a.numel() <= max(size, longest) for a, _ in chunks)
    assert len(chunks) == {1: 3, 9: 3, 17: 2, 1000: 1}[size]
    monkeypatch.setattr("tartan.core.gradients.is_cpu", lambda device: False)
    torch.testing.assert_close(dot(left, right, torch.float64), as_vector(left) @ as_vector(right))


def test_taking_and_putting_a_gradient_are_inverse():
    module = nn.Linear(2, 2)
    module.weight.grad = torch.ones(2, 2)
    parameters = list(module.parameters())
    taken = take_gradient(parameters)
    assert module.weight.grad is None
    put_gradient(parameters, taken)
    assert module.weight.grad is taken[0]
    assert module.bias.grad is None


def test_nothing_to_multiply_is_a_zero_where_it_is_asked_for():
    zero = dot([], [], device=torch.device("meta"))
    assert zero.device.type == "meta"
