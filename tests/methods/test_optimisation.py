"""Which rate and decay each parameter has, and how the rates rise and fall."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tartan.errors import UserError
from tartan.methods.optimisation import Optimisation

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


def test_a_frozen_body_is_left_to_no_optimiser():
    body, end_head = Small().requires_grad_(False), Small()
    optimiser = SETTINGS.optimiser(body, end_head, [])
    held = [p for group in optimiser.param_groups for p in group["params"]]
    assert {id(p) for p in held} == {id(p) for p in end_head.parameters()}


def test_pretraining_has_no_end_head():
    optimiser = SETTINGS.optimiser(Small(), None, [Small()])
    assert {group["lr"] for group in optimiser.param_groups} == {1e-4}


def test_the_settings_reach_adamw():
    settings = Optimisation(beta1=0.8, beta2=0.95, eps=1e-5)
    (group, *_) = settings.optimiser(Small(), None, []).param_groups
    assert group["betas"] == (0.8, 0.95)
    assert group["eps"] == 1e-5


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


def test_rates_rise_over_the_warm_up_then_fall_to_0():
    expected = [0, 0.25, 0.5, 0.75, *[1 - i / 16 for i in range(17)]]
    assert rates(20, warmup=0.2) == pytest.approx(expected)


def test_without_a_warm_up_rates_start_at_the_peak():
    assert rates(10, warmup=0) == pytest.approx([1 - i / 10 for i in range(11)])


def test_a_warm_up_over_all_steps_ends_just_below_the_peak():
    assert rates(10, warmup=1)[:10] == pytest.approx([i / 10 for i in range(10)])


def test_the_papers_warm_up_is_6_percent_of_the_steps():
    series = rates(100, warmup=0.06)
    assert series.index(max(series)) == 6


def test_a_step_moves_what_has_a_gradient():
    body, head = nn.Linear(2, 2), nn.Linear(2, 2)
    before = head.weight.detach().clone()
    optimiser = SETTINGS.optimiser(body, head, [])
    head(torch.ones(1, 2)).sum().backward()
    kept = body.weight.detach().clone()
    optimiser.step()
    assert body.weight.equal(kept)  # no gradient, not even decay
    assert not head.weight.equal(before)


@pytest.mark.parametrize("name", ["body_lr", "end_head_lr", "weight_decay", "eps"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_rates_and_decay_are_not_negative(name, value):
    with pytest.raises(UserError, match=f"{name}: "):
        Optimisation(**{name: value})


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_the_warm_up_is_a_share(value):
    with pytest.raises(UserError, match="warmup"):
        Optimisation(warmup=value)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_the_clipping_norm_is_positive_or_none(value):
    with pytest.raises(UserError, match="clip_norm"):
        Optimisation(clip_norm=value)
    assert Optimisation(clip_norm=None).clip_norm is None


@pytest.mark.parametrize("name", ["beta1", "beta2"])
@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_betas_are_shares_below_1(name, value):
    with pytest.raises(UserError, match=name):
        Optimisation(**{name: value})


def test_a_constant_rate_stays_at_its_peak_to_the_end():
    parameter = nn.Parameter(torch.zeros(2))
    optimiser = torch.optim.AdamW([parameter], lr=1e-3)
    schedule = Optimisation(decay="constant", warmup=0.2).schedule(optimiser, 10)
    rates = []
    for _ in range(10):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates == pytest.approx([0.0, 5e-4, *[1e-3] * 8])


def test_an_unknown_decay_is_an_error_that_names_the_option():
    with pytest.raises(UserError, match=r"^decay: "):
        Optimisation(decay="cosine")
