"""The stages that each method would run on the data."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir

from tartan.check.inputs import read_inputs
from tartan.check.schedule import TEXT_METHODS, method_plans
from tartan.core.task_names import END_TASK
from tartan.experiment.prepare import enabled_stages
from tests.check import made_up
from tests.in_process import CONF

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _hydra():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


@pytest.fixture
def plans(tmp_path):
    def call(*options):
        own = made_up.written(tmp_path)
        if any(option.startswith("method=") for option in options):
            own = [option for option in own if "stages.joint" not in option]
        config = compose("check", overrides=[*own, *options])
        inputs = read_inputs(config, enabled_stages(config))
        found, missing = method_plans(config, inputs)
        return {plan.name: plan for plan in found}, missing

    return call


def test_every_method_has_its_stages_tasks_and_passes(plans):
    found, missing = plans()
    assert list(found) == list(TEXT_METHODS)
    assert missing == {}
    assert [plan.name for plan in found.values() if plan.configured] == ["meta_tartan"]
    tasks = {n: [stage.tasks for stage in plan.stages] for n, plan in found.items()}
    assert tasks == {
        "finetune": [(END_TASK,)],
        "tapt": [("tapt",), (END_TASK,)],
        "dapt": [("dapt",), (END_TASK,)],
        "dapt_tapt": [("dapt",), ("tapt",), (END_TASK,)],
        "mt_tartan": [(END_TASK, "dapt", "tapt")],
        "meta_tartan": [(END_TASK, "dapt", "tapt")],
    }
    passes = {name: [stage.passes for stage in plan.stages] for name, plan in found.items()}
    assert (passes["dapt_tapt"], passes["mt_tartan"], passes["meta_tartan"]) == (
        [1, 1, 1],
        [3],
        [4],
    )


def test_steps_are_the_runs_own(plans):
    found, _ = plans()
    (joint,) = found["meta_tartan"].stages
    assert joint.steps == 150 * 8 // 4  # epochs of 8 examples in batches of 4
    assert joint.interval == 30
    assert joint.least_steps == 300  # 21 evaluations would be more
    dapt, finetune = found["dapt"].stages
    assert dapt.steps == 2  # 100 epochs of 4 texts in batches of 256
    assert dapt.interval is None
    assert (finetune.steps, finetune.interval, finetune.least_steps) == (5, 1, 4)


def test_other_methods_take_the_commands_settings_of_stages_they_share(plans):
    found, _ = plans("max_steps=7", "method.stages.joint.evaluate_every=2")
    (joint,) = found["mt_tartan"].stages
    assert (joint.settings.batch_size, joint.steps, joint.interval) == (4, 7, 2)
    assert not joint.meta_gradient
    assert found["finetune"].stages[0].settings.batch_size == 16
    assert all(stage.steps <= 7 for plan in found.values() for stage in plan.stages)


def test_beside_an_experiment_for_tables_the_others_are_planned_as_theirs(plans, monkeypatch):
    found, _ = plans()
    assert found["tapt"].stages[0].settings.batch_size == 256
    monkeypatch.setattr("tartan.check.schedule.experiment_asked_for", lambda: "custom")
    found, _ = plans()
    for name, epochs in (("tapt", [30]), ("dapt", [5]), ("dapt_tapt", [5, 30])):
        *first, last = found[name].stages
        assert [stage.settings.max_epochs for stage in first] == epochs
        assert all(stage.settings.batch_size == 32 for stage in first)
        assert (last.settings.max_epochs, last.settings.patience) == (30, 5)


def test_a_callbacks_patience_takes_the_place_of_the_stages(plans):
    joint = "method.stages.joint"
    options = [f"{joint}.max_steps=50", f"{joint}.evaluate_every=5", f"{joint}.patience=1"]
    assert plans(*options)[0]["meta_tartan"].stages[0].least_steps == 10
    found, _ = plans(*options, "callbacks=early_stopping", "callbacks.early_stopping.patience=3")
    assert found["meta_tartan"].stages[0].least_steps == 20


def test_a_callback_may_refer_to_an_option_of_the_command(plans):
    joint = "method.stages.joint"
    options = [f"{joint}.max_steps=50", f"{joint}.evaluate_every=5", "callbacks=early_stopping"]
    found, _ = plans(*options, "callbacks.early_stopping.patience=${keep}", "+keep=2")
    assert found["mt_tartan"].stages[0].least_steps == 15


def test_without_domain_text_two_methods_are_not_for_the_data(plans):
    found, missing = plans("method=tapt", "auxiliary.dapt.path=/nowhere.txt")
    assert missing == {"dapt": "no domain text", "dapt_tapt": "no domain text"}
    assert [stage.tasks for stage in found["meta_tartan"].stages] == [(END_TASK, "tapt")]


def test_another_weighting_is_planned_for(plans):
    found, _ = plans("weighting=uniform")
    assert [stage.passes for stage in found["meta_tartan"].stages] == [3]


def test_sampling_is_of_the_configured_method_alone(plans):
    found, _ = plans("method.stages.joint.sampled=1")
    (own,), (other,) = found["meta_tartan"].stages, found["mt_tartan"].stages
    assert (own.settings.sampled, other.settings.sampled) == (1, None)


def test_a_method_of_ones_own_is_among_them(plans):
    found, _ = plans("method.name=mine")
    assert found["mine"].configured
    assert not found["meta_tartan"].configured
