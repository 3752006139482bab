"""Weightings that follow the losses, and random ones."""

from __future__ import annotations

import math

import pytest
import torch

from tartan.core.weighting.fixed import Random
from tartan.core.weighting.loss_based import DWA, Uncertainty
from tests.core.steps import GivenStep


def step(weighting, losses):
    """One step with these losses; the weights applied."""
    vectors = torch.arange(2.0 * len(losses)).reshape(-1, 2) - 1
    return GivenStep(vectors, losses).run(weighting)


def test_random_weights_sum_to_one_and_follow_the_seed():
    weighting = Random(["a", "b", "c"])
    drawn = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        drawn.append(step(weighting, [1.0, 1.0, 1.0]))
        assert float(drawn[-1].sum()) == pytest.approx(1)
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_uncertainty_takes_the_gradient_step_of_kendalls_loss():
    """Against automatic differentiation of `sum exp(-s) L + s / 2`, equation 10's form."""
    weighting = Uncertainty(["a", "b"], lr=0.1)
    s = torch.zeros(2, requires_grad=True)
    for losses in ([2.0, 0.5], [1.0, 0.25], [3.0, 4.0]):
        objective = ((-s).exp() * torch.tensor(losses) + s / 2).sum()
        (gradient,) = torch.autograd.grad(objective, s)
        torch.testing.assert_close(step(weighting, losses), (-s.detach()).exp())
        s = (s - 0.1 * gradient).detach().requires_grad_()
        torch.testing.assert_close(weighting.log_variances, s.detach())


def test_dwa_favours_the_task_whose_loss_falls_more_slowly():
    weighting = DWA(["fast", "slow"], temperature=2.0, window=3)
    for _ in range(3):
        assert step(weighting, [4.0, 4.0]).tolist() == [0.5, 0.5]
    for _ in range(3):
        assert step(weighting, [1.0, 3.0]).tolist() == [0.5, 0.5]
    ratios = [math.exp(0.25 / 2), math.exp(0.75 / 2)]
    expected = [ratio / sum(ratios) for ratio in ratios]
    assert step(weighting, [9.0, 9.0]).tolist() == pytest.approx(expected)
