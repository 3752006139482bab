"""Fast dropout: how often it drops, and how it scales what it keeps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.attention import IMPLEMENTATION, use_kernels
from tartan.kernels.dropout import LEVELS, FastDropout


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
