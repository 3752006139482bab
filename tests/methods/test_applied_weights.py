"""The weights of the last step that counted."""

from __future__ import annotations

import torch

from tartan.core.step import StepRecord
from tartan.methods.applied_weights import AppliedWeights

YES, NO = torch.tensor(True), torch.tensor(False)


def record(**weights: float) -> StepRecord:
    values = torch.tensor(list(weights.values()))
    return StepRecord(tuple(weights), values, values, values, torch.tensor(0.0))


def test_a_step_that_was_skipped_leaves_the_weights_of_the_one_before():
    weights = AppliedWeights(["a", "b"])
    assert weights.by_task() == {}
    weights.follow(record(a=0.25, b=0.75), None, YES)
    weights.follow(record(a=0.5, b=0.5), None, NO)
    assert weights.by_task() == {"a": 0.25, "b": 0.75}


def test_there_are_no_weights_as_long_as_all_steps_were_skipped():
    weights = AppliedWeights(["a", "b"])
    weights.follow(record(a=float("nan")), None, NO)
    assert weights.by_task() == {}
    weights.follow(record(b=0.75), None, YES)
    assert weights.by_task() == {"a": 0.0, "b": 0.75}


def test_what_a_step_has_not_sampled_weighs_what_it_did():
    weights = AppliedWeights(["a", "b", "c"])
    weights.follow(record(a=0.25, c=0.75), None, YES)
    weights.follow(record(a=0.5, b=0.5), None, YES)
    assert weights.by_task() == {"a": 0.5, "b": 0.5, "c": 0.75}


def test_a_weighting_that_knows_them_all_is_asked():
    weights = AppliedWeights(["a", "b", "c"])
    weights.follow(record(a=1.0), torch.tensor([0.5, 0.25, 0.25]), YES)
    assert weights.by_task() == {"a": 0.5, "b": 0.25, "c": 0.25}


def test_a_checkpoints_weights_are_gone_on_from_as_if_it_had_never_stopped():
    """A first step after it that is skipped, or samples other tasks."""
    again = AppliedWeights(["a", "b", "c"])
    again.restore([0.25, 0.5, 0.25])
    again.follow(record(a=1.0, b=0.0), None, NO)
    assert again.by_task() == {"a": 0.25, "b": 0.5, "c": 0.25}
    again.restore([0.25, 0.5, 0.25])
    again.follow(record(a=0.5, c=0.5), None, YES)
    assert again.by_task() == {"a": 0.5, "b": 0.5, "c": 0.5}


def test_what_is_told_is_not_what_a_later_step_changes_in_place():
    weights, moving = AppliedWeights(["a"]), record(a=0.5)
    weights.follow(moving, None, YES)
    moving.weights.zero_()
    assert weights.by_task() == {"a": 0.5}
