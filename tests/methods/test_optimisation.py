"""Rates and decay of each parameter, how the rates rise and fall, and updates that are cut."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from tartan.methods.optimisation import Optimisation, prepare_update

YES, NO = torch.tensor(True), torch.tensor(False)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.dense = nn.Linear(4, 3)
        self.norm = nn.LayerNorm(3)


def test_the_end_tasks_head_has_its_own_rate_and_only_matrices_are_decayed():
    body, end_head, other = Small(), Small(), Small()
    settings = Optimisation(body_lr=1e-4, end_head_lr=1e-3, weight_decay=0.1)
    optimiser = settings.optimiser(body, end_head, [other])
    found = [(id(p), g["lr"], g["weight_decay"]) for g in optimiser.param_groups
             for p in g["params"]]  # fmt: skip
    expected = [
        (id(parameter), rate, 0.1 if parameter.ndim == 2 else 0.0)
        for module, rate in ((body, 1e-4), (other, 1e-4), (end_head, 1e-3))
        for parameter in module.parameters()
    ]
    assert sorted(found) == sorted(expected)


def rates(steps, **settings):
    """The rate of each of the steps, relative to its peak, for every group."""
    optimisation = Optimisation(body_lr=2.0, end_head_lr=20.0, **settings)
    optimiser = optimisation.optimiser(Small(), Small(), [])
    peaks = [group["lr"] for group in optimiser.param_groups]
    schedule = optimisation.schedule(optimiser, steps)
    series = []
    for _ in range(steps + 1):
        shares = [g["lr"] / peak for g, peak in zip(optimiser.param_groups, peaks, strict=True)]
        assert max(shares) == pytest.approx(min(shares))
        series.append(shares[0])
        optimiser.step()
        schedule.step()
    return series


def test_rates_rise_over_the_warm_up_then_fall_to_0_or_stay():
    rising, falling = [0, 0.25, 0.5, 0.75], [i / 16 for i in range(17)]
    assert rates(20, warmup=0.2) == pytest.approx([*rising, *(1 - i for i in falling)])
    cosine = [(1 + math.cos(math.pi * i)) / 2 for i in falling]
    assert rates(20, warmup=0.2, decay="cosine") == pytest.approx([*rising, *cosine])
    assert rates(20, warmup=0.2, decay="constant") == pytest.approx([*rising, *[1] * 17])


def network(dtype, fused):
    """A network with gradients, and its optimiser."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2)).to(dtype)
    for parameter in module.parameters():
        parameter.grad = torch.randn_like(parameter)
    half = list(module.parameters())
    groups = [{"params": half[:2], "weight_decay": 0.1}, {"params": half[2:]}]
    return module, torch.optim.AdamW(groups, lr=0.01, fused=fused)


def norm_of(module):
    return torch.cat([p.grad.reshape(-1) for p in module.parameters()]).norm()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("limit", [0.3, 1e6, None])
def test_steps_are_those_of_clipped_gradients(limit, dtype, fused):
    ours, own = network(dtype, fused)
    theirs, other = network(dtype, fused)
    for step in range(3):
        for module in (ours, theirs):
            torch.manual_seed(step)
            for parameter in module.parameters():
                parameter.grad = (step + 1) * torch.randn_like(parameter)
        prepare_update(own, norm_of(ours), limit, YES)
        own.step()
        nn.utils.clip_grad_norm_(theirs.parameters(), limit or torch.inf)
        other.step()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_nothing_is_updated_where_a_number_is_not_finite(value, dtype, fused):
    module, optimiser = network(dtype, fused)
    optimiser.step()
    before = copy.deepcopy(module.state_dict())
    state = copy.deepcopy(optimiser.state_dict()["state"])
    next(module.parameters()).grad[0, 0] = value
    prepare_update(optimiser, norm_of(module), 1.0, NO)
    optimiser.step()
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
    for key, entries in optimiser.state_dict()["state"].items():
        assert all(torch.equal(entries[name], state[key][name]) for name in entries)
