"""Weightings of a program's own are honoured, or refused in one line before any training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tartan.core.mixture import Mixed, weighted_mean
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting
from tartan.core.weighting.fixed import Uniform
from tartan.errors import UserError
from tartan.methods.given_weighting import check_sampling, check_weighting, weighting_of
from tartan.methods.plain import node_of

NAMES = ["end_task", "tapt"]


class WithAParameter(Weighting):
    """A weighting with logits that no optimiser knows."""

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names)
        self.logits = nn.Parameter(torch.zeros(len(task_names)))

    def mix(self, step: Step) -> Mixed:
        return weighted_mean(step.gradients(), self.logits.softmax(0))


class WithAnOption(Weighting):
    def __init__(self, task_names: list[str], option: object = None) -> None:
        super().__init__(task_names)

    def mix(self, step: Step) -> Mixed:
        raise NotImplementedError


def node(kind: type, **arguments: object) -> dict[str, object]:
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **arguments}


def test_a_weighting_with_a_parameter_is_refused():
    line = "weighting WithAParameter has a parameter 'logits', which no optimiser trains"
    with pytest.raises(UserError, match=line):
        weighting_of(node(WithAParameter), NAMES)


class Remembering(Uniform):
    per_task = None

    def __init__(self, task_names):
        super().__init__(task_names)
        self.register_buffer("running", torch.zeros(len(task_names)))


@pytest.mark.parametrize(
    ("per_task", "said"),
    [
        (None, r"which of the buffers of weighting Remembering \(alpha, running\) have .*per_task"),
        (("alpha", "runing"), "weighting Remembering: per_task names 'runing', which is no buffer"),
    ],
)
def test_a_weighting_says_which_buffers_are_of_tasks_before_steps_sample_them(
    per_task, said, monkeypatch
):
    monkeypatch.setattr(Remembering, "per_task", per_task)
    weighting = Remembering(["end_task", "a", "b"])
    with pytest.raises(UserError, match=said):
        check_sampling(weighting, auxiliaries=2, sampled=1)
    check_sampling(weighting, auxiliaries=2, sampled=None)


def test_a_class_that_is_no_weighting_is_refused():
    with pytest.raises(UserError, match="Linear is not a subclass of Weighting"):
        check_weighting(nn.Linear(1, 1))


@pytest.mark.parametrize("value", [Path("/"), object(), [np.zeros(2)], {"a": {1, 2}}])
def test_arguments_of_a_weighting_are_plain(value):
    with pytest.raises(UserError, match="argument `option` of WithAnOption holds a "):
        node_of(partial(WithAnOption, option=value))
