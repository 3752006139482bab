"""Fast dropout, and attention with it and its gradient, against their definitions."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.attention import IMPLEMENTATION, use_kernels
from tartan.kernels.dropout import LEVELS, FastDropout, dropout_attention
from tests.encoders.derivatives import assert_same_derivatives

SHAPE = (3, 2, 5, 4)
SCALE = 0.4


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 1 / LEVELS, 1 - 1 / LEVELS])
def test_it_drops_with_its_probability_and_keeps_the_mean(p):
    torch.manual_seed(0)
    count = 4_000_000
    out = FastDropout(p)(torch.ones(count, dtype=torch.float64))
    dropped = float((out == 0).double().mean())
    sigma = (p * (1 - p) / count) ** 0.5
    assert abs(dropped - p) < 5 * sigma + 0.5 / LEVELS
    kept = out[out != 0]
    assert torch.equal(kept, torch.full_like(kept, 1 / (1 - round(p * LEVELS) / LEVELS)))


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5])
def test_neighbours_are_dropped_independently(lag):
    """Four elements share a draw of 64 bits: their masks must not be correlated."""
    torch.manual_seed(1)
    mask = (FastDropout(0.3)(torch.ones(2_000_000)) == 0).double()
    mask -= mask.mean()
    correlation = (mask[lag:] * mask[:-lag]).mean() / mask.square().mean()
    assert abs(float(correlation)) < 5 / 2_000_000**0.5


@pytest.mark.parametrize("module", [FastDropout(0.5).eval(), FastDropout(0.0)])
def test_nothing_is_dropped_in_evaluation_and_at_probability_zero(module):
    values = torch.randn(100)
    assert torch.equal(module(values), values)


def test_one_call_puts_kernels_into_bodies_and_heads_and_a_second_changes_nothing():
    body = TinyEncoder(hidden_size=8).load().body
    whole = nn.ModuleDict({"body": body, "head": nn.Sequential(nn.Linear(8, 2), nn.Dropout())})
    assert body.config._attn_implementation == "sdpa"  # an encoder does not change its body
    before, parts = dict(whole.named_parameters()), []
    for _ in range(2):
        use_kernels(whole)
        parts.append([type(part) for part in whole.modules()])
        assert nn.Dropout not in parts[-1]
        assert FastDropout in parts[-1]
        assert body.config._attn_implementation == IMPLEMENTATION
        assert all(before[name] is p for name, p in whole.named_parameters())
    assert parts[0] == parts[1]


@pytest.fixture
def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(SHAPE, dtype=torch.float64, requires_grad=True) for _ in range(3)]


@pytest.fixture
def factors() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.rand(3, 2, 5, 5, dtype=torch.float64).gt(0.3).double() / 0.7


def allowed(kind: str) -> torch.Tensor | None:
    keys = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    keys[1, ..., 3:] = False
    window = (torch.arange(5)[:, None] - torch.arange(5)).abs() < 3
    return {"all": None, "keys": keys, "of one text": keys.expand(3, 1, 5, 5), "window": window}[
        kind
    ]


def reference(query, key, value, allowed, factors, scale):
    """Compute one query of one head of one text at a time, from the allowed keys alone."""
    examples, heads, positions, size = query.shape
    out = query.new_zeros(examples, positions, heads, size)
    for e in range(examples):
        for h in range(heads):
            for p in range(positions):
                may = torch.ones(positions, dtype=torch.bool)
                if allowed is not None:
                    may = allowed.expand(examples, heads, positions, positions)[e, h, p]
                scores = scale * (key[e, h, may] @ query[e, h, p])
                weights = scores.exp() / scores.exp().sum()
                out[e, p, h] = (factors[e, h, p, may] * weights) @ value[e, h, may]
    return out


@pytest.mark.parametrize("kind", ["all", "keys", "of one text", "window"])
def test_values_and_gradients_are_those_of_the_definition(kind, inputs, factors):
    found = dropout_attention(*inputs, allowed(kind), factors, SCALE)
    expected = reference(*inputs, allowed(kind), factors, SCALE)
    assert found.shape == (3, 5, 2, 4)
    assert found.is_contiguous()
    assert_same_derivatives(found, expected, inputs)


def test_inside_autocast_only_inputs_and_outputs_have_16_bits(factors):
    torch.manual_seed(0)
    narrow = [torch.randn(SHAPE).bfloat16().requires_grad_() for _ in range(3)]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = dropout_attention(*narrow, allowed("keys"), factors.float(), SCALE)
    expected = dropout_attention(*wide, allowed("keys"), factors, SCALE)
    assert found.dtype == torch.bfloat16
    assert float((found - expected).abs().max() / expected.abs().max()) < 2**-8
    found.sum().backward()
    expected.sum().backward()
    for ours, exact in zip(narrow, wide, strict=True):
        assert ours.grad.dtype == torch.bfloat16
        assert float((ours.grad - exact.grad).abs().max() / exact.grad.abs().max()) < 2**-8


def test_a_query_that_may_attend_to_nothing_gives_no_nan(inputs, factors):
    nothing = torch.ones(3, 1, 5, 5, dtype=torch.bool)
    nothing[1, :, 4] = False
    found = dropout_attention(*inputs, nothing, factors, SCALE)
    assert found.isfinite().all()
    used = F.relu(found[:, :4]).sum()  # as a loss does, which padding has no part in
    assert all(g.isfinite().all() for g in torch.autograd.grad(used, inputs))
