"""Which rate and decay each parameter has, and how the rates rise and fall."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from tartan.methods.optimisation import Optimisation, prepare_update

SETTINGS = Optimisation(body_lr=1e-4, end_head_lr=1e-3, weight_decay=0.1)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.dense = nn.Linear(4, 3)
        self.norm = nn.LayerNorm(3)


def found(optimiser, parameter):
    """The group of a parameter; every parameter is in exactly one."""
    (group,) = [g for g in optimiser.param_groups if any(p is parameter for p in g["params"])]
    return group


def test_body_and_auxiliary_heads_have_one_rate_and_the_end_tasks_head_its_own():
    body, end_head, other = Small(), Small(), Small()
    optimiser = SETTINGS.optimiser(body, end_head, [other])
    for module, rate in ((body, 1e-4), (other, 1e-4), (end_head, 1e-3)):
        assert {found(optimiser, p)["lr"] for p in module.parameters()} == {rate}
    count = sum(len(group["params"]) for group in optimiser.param_groups)
    assert count == 3 * len(list(body.parameters()))


def test_matrices_are_decayed_biases_and_norms_are_not():
    modules = [Small(), Small(), Small()]
    optimiser = SETTINGS.optimiser(modules[0], modules[1], modules[2:])
    for module in modules:
        for matrix in (module.embedding.weight, module.dense.weight):
            assert found(optimiser, matrix)["weight_decay"] == 0.1
        for vector in (module.dense.bias, module.norm.weight, module.norm.bias):
            assert found(optimiser, vector)["weight_decay"] == 0.0


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


YES, NO = torch.tensor(True), torch.tensor(False)


def network(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2)).to(dtype)
    for parameter in made.parameters():
        parameter.grad = torch.randn_like(parameter)
    return made


def norm_of(module: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.reshape(-1) for p in module.parameters()]).norm()


def optimiser_of(module: nn.Module, fused: bool) -> torch.optim.AdamW:
    half = list(module.parameters())
    groups = [{"params": half[:2], "weight_decay": 0.1}, {"params": half[2:]}]
    return torch.optim.AdamW(groups, lr=0.01, fused=fused)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("limit", [0.3, 1e6, None])
def test_steps_are_those_of_clipped_gradients(limit, dtype, fused):
    ours, theirs = network(dtype), network(dtype)
    own, other = optimiser_of(ours, fused), optimiser_of(theirs, fused)
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
    module = network(dtype)
    optimiser = optimiser_of(module, fused)
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
