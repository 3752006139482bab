"""A stage's length and its evaluations, from its two bounds."""

from __future__ import annotations

import pytest

from tartan.errors import UserError
from tartan.methods.stage import Stage


@pytest.mark.parametrize(
    ("bounds", "batch_size", "examples", "steps"),
    [
        ({"max_steps": 5}, 8, 50, 5),
        ({"max_epochs": 2}, 8, 50, 13),  # the last batch is not full
        ({"max_epochs": 2, "max_steps": 20}, 8, 50, 13),
        ({"max_epochs": 2, "max_steps": 5}, 8, 50, 5),
        ({"max_epochs": 0.001}, 8, 50, 1),
        ({"max_epochs": 2.2}, 1, 50, 110),  # as it is written: 2.2 * 50 is above 110
        ({"max_epochs": 0.07}, 1, 100, 7),
    ],
)
def test_the_smaller_of_the_two_bounds_holds(bounds, batch_size, examples, steps):
    stage = Stage(module="m", batch_size=batch_size, **bounds)
    assert stage.length(examples, [10_000]) == (steps, min(steps, -(-examples // batch_size)))
    assert stage.length(None, [examples])[0] == steps


@pytest.mark.parametrize(("auxiliaries", "steps"), [([1688, 16880], 19_782), ([1688], 1_979)])
def test_joint_training_on_acl_arc_takes_as_many_steps_as_its_authors(auxiliaries, steps):
    stage = Stage(module="m", batch_size=128, max_epochs=150, epochs_of="largest")
    assert stage.length(1688, auxiliaries)[0] == steps


def test_a_stage_needs_a_bound_and_tasks_that_share_a_batch_fit_into_it():
    with pytest.raises(UserError, match="max_steps or max_epochs"):
        Stage(module="m")
    with pytest.raises(UserError, match="needs a larger batch_size"):
        Stage(module="m", max_steps=1, batch_size=8, sampled=9)
