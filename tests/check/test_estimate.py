"""Measured passes times planned steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.check.estimate import Measured, batch_sizes, estimate, gradients_in_memory
from tartan.check.rates import Machine, Rate
from tartan.check.schedule import MethodPlan, StagePlan
from tartan.core.meta_head import MetaHeadSettings
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Needs
from tartan.core.weighting.meta import Meta
from tartan.core.weighting.uniform import Uniform
from tartan.methods.stage import Stage

BODY = 1000
MEASURED = Measured(
    machine=Machine("cpu", "32-true", update_seconds=0.5, body=BODY),
    rates={
        END_TASK: Rate(0.01, 0.003, 100, held=70, head=10),
        "dapt": Rate(0.02, 0.005, 100, held=90, head=20),
    },
    positions={END_TASK: {4: 100.0, 8: 200.0, 2: 50.0}, "dapt": {8: 300.0}},
    dev=1000,
    test=2000,
)


def planned(tasks, weighting=None, meta=False, **settings):
    stage = Stage("x", batch_size=8, meta_batch_size=4, max_steps=10, **settings)
    end = tasks[0] == END_TASK
    mixing = weighting or Uniform(list(tasks))
    least, interval = (6, 3) if end else (10, None)
    return StagePlan("stage", stage, tuple(tasks), 10, least, interval, mixing, meta, tuple(tasks))


def of(*stages):
    return estimate(MethodPlan("m", True, stages), MEASURED)


def test_finetuning_takes_a_pass_and_an_update_a_step_and_evaluations():
    found = of(planned([END_TASK]))
    (stage,) = found.stages
    assert stage.step_seconds == pytest.approx(200 * 0.01 + 0.5)
    assert stage.seconds == pytest.approx(10 * 2.5 + 4 * 3)  # after 3, 6, 9 and 10 steps
    assert stage.least_seconds == pytest.approx(6 * 2.5 + 2 * 3)
    assert found.seconds == pytest.approx(25 + 12 + 2000 * 0.003)  # and the one look at test


def test_the_time_has_test_only_where_a_run_evaluates_it_and_twice_with_a_baseline():
    plan = MethodPlan("m", True, (planned([END_TASK]),))
    assert estimate(plan, MEASURED, tested=False).seconds == pytest.approx(25 + 12)
    compared = estimate(plan, MEASURED, with_baseline=True)
    assert compared.seconds == 2 * estimate(plan, MEASURED).seconds
    assert compared.least_seconds == 2 * estimate(plan, MEASURED).least_seconds


def test_meta_tartan_takes_a_pass_a_task_and_one_more():
    tasks = [END_TASK, "dapt"]
    found = of(planned(tasks, Meta(tasks), meta=True))
    assert found.stages[0].passes == 3
    assert found.stages[0].step_seconds == pytest.approx(2 + 6 + 100 * 0.01 + 0.5)


def test_a_meta_head_on_other_examples_takes_a_forward_pass_of_theirs():
    tasks = [END_TASK, "dapt"]
    head = MetaHeadSettings(examples=2, examples_from="rest")
    plan = planned(tasks, Meta(tasks), meta=True, meta_head=head)
    assert of(plan).stages[0].step_seconds == pytest.approx(2 + 6 + 1 + 50 * 0.003 + 0.5)
    assert batch_sizes([MethodPlan("m", True, (plan,))]) == {END_TASK: {8, 4, 2}, "dapt": {8}}


def test_stages_follow_one_another_and_the_largest_decides_the_memory():
    first, second = planned(["dapt"]), planned([END_TASK])
    both, apart = of(first, second), (of(first), of(second))
    test = 2000 * 0.003
    assert both.seconds == pytest.approx(sum(found.seconds for found in apart) - test)
    assert both.bytes == max(found.bytes for found in apart)


def test_memory_is_parameters_moments_gradients_and_activations():
    assert of(planned([END_TASK])).bytes == 4 * (BODY + 10) + 70
    tasks = [END_TASK, "dapt"]
    mixed = of(planned(tasks)).bytes
    assert mixed == 3 * (BODY + 30) + 2 * BODY + 30 + 90
    # the meta-gradient, and the meta head with its gradient and moments
    assert of(planned(tasks, Meta(tasks), meta=True)).bytes == mixed + BODY + 40


def test_a_frozen_body_needs_forward_passes_and_no_moments():
    found = of(planned(["dapt"], freeze_body=True))
    assert found.stages[0].step_seconds == pytest.approx(300 * 0.005 + 0.5)
    assert found.bytes == BODY + 20 + 2 * 20 + 20 + 90


def test_the_number_of_gradients_does_not_grow_with_the_tasks_unless_the_gramian_is_needed():
    many = [END_TASK, *(f"task{number}" for number in range(5))]
    assert gradients_in_memory(planned(many)) == 2
    assert gradients_in_memory(planned(many, Meta(many), meta=True)) == 3

    class All(Uniform):
        needs = Needs(all_gradients=True)

    assert gradients_in_memory(replace(planned(many), weighting=All(many))) == 7
