"""The end task's share rises as it should, and steps of one task keep the shares."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tartan.core.body import SharedBody
from tartan.core.passes import Passes
from tartan.core.step import Step
from tartan.core.task import StepBatch
from tartan.core.weighting.annealed import Annealed
from tests.core.steps import problem

NAMES = ["end", "aux0", "aux1"]


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_the_share_rises_from_start_to_one_and_stays(shape):
    weighting = Annealed(NAMES, ramp=10, start=0.2, shape=shape)
    shares = [weighting.shares(step) for step in range(15)]
    assert shares[0] == pytest.approx([0.2, 0.4, 0.4])
    assert shares[5] == pytest.approx([0.6, 0.2, 0.2])
    assert all(share == pytest.approx([1, 0, 0]) for share in shares[10:])
    assert [s[0] for s in shares] == sorted(s[0] for s in shares)
    assert all(sum(share) == pytest.approx(1) for share in shares)


@given(
    st.integers(1, 60), st.floats(0, 1), st.integers(1, 4), st.sampled_from(["linear", "cosine"])
)
def test_each_task_has_its_share_of_the_turns(ramp, start, others, shape):
    names = ["end", *(f"aux{i}" for i in range(others))]
    weighting = Annealed(names, ramp, start, shape, one_task=True)
    due, had = [0.0] * len(names), [0] * len(names)
    for step in range(80):
        due = [sum(pair) for pair in zip(due, weighting.shares(step), strict=True)]
        had[weighting.turn(step)] += 1
        assert max(abs(a - b) for a, b in zip(due, had, strict=True)) < len(names)


def test_a_turn_is_a_function_of_the_step_alone():
    """So a resumed stage, and every process of several, goes on with the same tasks."""
    whole, resumed = (Annealed(NAMES, 30, one_task=True) for _ in range(2))
    turns = [whole.turn(step) for step in range(40)]
    assert [resumed.turn(step) for step in range(25, 40)] == turns[25:]
    assert set(turns[30:]) == {0}


def stepped(weighting, number):
    """The record of a step of that number, and the gradients of body and heads."""
    body, tasks, batches, _ = problem(seed=0, auxiliaries=2)
    batch = StepBatch(number, batches)
    passes = Passes(SharedBody(body, torch.float64), seed=lambda purpose, part: None)
    record, gradients = Step(passes, copy.copy(tasks), batch).run(weighting.mix)
    return record, gradients.of_body, gradients.of_heads


def test_a_step_of_one_task_takes_its_gradient_and_leaves_other_heads():
    def mixed(weights):
        weighting = Annealed(NAMES, ramp=1)
        weighting.shares = lambda step: weights
        return stepped(weighting, 0)[1]

    weighting = Annealed(NAMES, ramp=6, one_task=True)
    for number in range(8):
        turn = weighting.turn(number)
        record, of_body, of_heads = stepped(weighting, number)
        assert record.tasks == (NAMES[turn],)
        assert len(of_heads) == 1
        alone = mixed([float(index == turn) for index in range(3)])
        for mine, expected in zip(of_body, alone, strict=True):
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)
