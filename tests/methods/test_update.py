"""The update against torch's own clipping, and where numbers went wrong."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from tartan.methods.update import prepare_update

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


def test_the_step_after_one_that_did_not_count_does():
    module = network(torch.float32)
    optimiser = optimiser_of(module, True)
    prepare_update(optimiser, torch.tensor(torch.nan), 1.0, NO)
    optimiser.step()
    before = [p.detach().clone() for p in module.parameters()]
    prepare_update(optimiser, norm_of(module), 1.0, YES)
    optimiser.step()
    assert all(not torch.equal(a, b) for a, b in zip(module.parameters(), before, strict=True))


@pytest.mark.parametrize("fused", [True, False])
def test_parameters_without_a_gradient_stay(fused):
    module = network(torch.float32)
    module[1].weight.grad = None
    before = module[1].weight.detach().clone()
    optimiser = optimiser_of(module, fused)
    prepare_update(optimiser, torch.tensor(5.0), 1.0, YES)
    optimiser.step()
    assert torch.equal(module[1].weight, before)
