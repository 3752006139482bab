"""A stage's length and its evaluations, from its two bounds."""

from __future__ import annotations

import pytest

from tartan.errors import UserError
from tartan.methods.stage import Stage


def stage(**values) -> Stage:
    return Stage(module="m", **values)


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [
        ({"max_steps": 5}, 5),
        ({"max_epochs": 2}, 13),  # 2 x 50 examples in batches of 8, the last not full
        ({"max_epochs": 2, "max_steps": 20}, 13),
        ({"max_epochs": 2, "max_steps": 5}, 5),
        ({"max_epochs": 0.5}, 4),
        ({"max_epochs": 0.001}, 1),
    ],
)
def test_the_smaller_of_the_two_bounds_holds(bounds, steps):
    assert stage(batch_size=8, **bounds).steps(50) == steps


@pytest.mark.parametrize(
    ("epochs", "examples", "batch_size", "steps"),
    [(2.2, 50, 1, 110), (1.1, 100, 10, 11), (0.07, 100, 1, 7), (1e-05, 200_000, 2, 1)],
)
def test_epochs_count_as_they_are_written(epochs, examples, batch_size, steps):
    assert stage(max_epochs=epochs, batch_size=batch_size).steps(examples) == steps


def test_evaluations_are_an_epoch_apart_by_default():
    assert stage(batch_size=8, max_steps=5).evaluation_interval(50) == 7
    assert stage(batch_size=64, max_steps=5).evaluation_interval(50) == 1


def test_a_stage_needs_a_bound():
    with pytest.raises(UserError, match="max_steps or max_epochs"):
        stage()


@pytest.mark.parametrize(
    ("epochs_of", "end_task", "others", "examples"),
    [
        ("end_task", 100, [1000, 100], 100),
        ("largest", 100, [1000, 100], 1000),
        ("largest", 100, [50], 100),
        ("end_task", None, [1000, 100], 1000),
        ("largest", 100, [], 100),
    ],
)
def test_an_epoch_is_over_the_end_task_or_the_largest(epochs_of, end_task, others, examples):
    stage = Stage(module="m", max_epochs=150, epochs_of=epochs_of)
    assert stage.epoch_examples(end_task, others) == examples


def test_joint_training_on_acl_arc_takes_as_many_steps_as_its_authors():
    stage = Stage(module="m", batch_size=128, max_epochs=150, epochs_of="largest")
    assert stage.steps(stage.epoch_examples(1688, [1688, 16880])) == 19_782
    assert stage.steps(stage.epoch_examples(1688, [1688])) == 1_979
