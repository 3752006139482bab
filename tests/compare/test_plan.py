"""Equal cost, the time that was given, the experiments that are written, and the options."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st

from tartan.compare.plan import METHODS, StepCost, plan_of, request_of, write_experiment
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.in_process import STAGES

COSTS = st.fixed_dictionaries(
    {
        method: st.fixed_dictionaries(
            {s: st.builds(StepCost, st.floats(1e9, 5e10), st.floats(0.1, 3)) for s in stages}
        )
        for method, stages in METHODS.items()
    }
)


def test_the_stages_are_those_of_the_configs():
    found = {method: list(stages) for method, stages in METHODS.items()}
    assert found == {method: STAGES[method] for method in METHODS}


def test_a_method_with_two_stages_spends_half_on_each():
    costs = {
        "finetune": {"finetune": StepCost(2.0, 1.0)},
        "dapt": {"dapt": StepCost(5.0, 2.0), "finetune": StepCost(2.0, 1.0)},
    }
    plan = plan_of(request_of(["steps=500"]), costs, start=7.0)
    assert plan.steps == {"finetune": {"finetune": 500}, "dapt": {"dapt": 100, "finetune": 250}}


def test_a_stage_whose_measured_steps_were_slowed_changes_nothing():
    costs = {
        "finetune": {"finetune": StepCost(2.0, 1.0)},
        "mt_tartan": {"joint": StepCost(4.0, 2.0)},
    }
    slowed = costs | {"meta_tartan": {"joint": StepCost(6.0, 300.0)}}
    for measured in (costs, slowed):
        assert plan_of(request_of([]), measured, start=7.0).run_seconds == pytest.approx(367)


@given(COSTS, st.integers(100, 1000))
def test_every_method_spends_the_budget_but_for_half_a_step_a_stage(costs, steps):
    plan = plan_of(request_of([f"steps={steps}"]), costs, start=0)
    budget = steps * min(list(stages.values())[-1].flops for stages in costs.values())
    for method, stages in plan.steps.items():
        total = sum(costs[method][stage].flops * number for stage, number in stages.items())
        slack = sum(max(1.001 * cost.flops / 2, cost.flops) for cost in costs[method].values())
        assert total == pytest.approx(budget, abs=slack)


@given(COSTS, st.floats(1, 5000))
def test_one_fold_and_the_last_run_fit_or_the_least_sensible_time_is_named(costs, minutes):
    request = request_of([f"minutes={minutes}"])
    try:
        plan = plan_of(request, costs, start=5, spent=60)
    except UserError as error:
        least = int(str(error).partition("take minutes=")[2].partition(",")[0])
        assert least > minutes
        plan = plan_of(request_of([f"minutes={least}"]), costs, start=5, spent=60)
        minutes = least
    assert plan.seconds == 60 * minutes - 60
    assert (len(costs) + 1) * plan.run_seconds <= plan.seconds + 1e-6


def test_runs_are_shorter_only_where_one_fold_does_not_fit():
    costs = {name: {name: StepCost(1.0, 1.0)} for name in ("finetune", "mt_tartan")}
    fits = plan_of(request_of(["minutes=18"]), costs, start=0)
    assert fits.steps["finetune"] == {"finetune": 360}
    shorter = plan_of(request_of(["minutes=9"]), costs, start=0)
    assert shorter.steps["finetune"] == {"finetune": 180}


def composed(request, method, *more):
    """The config of a run of the comparison."""
    overrides = [
        f"hydra.searchpath=['file://{request.folder.absolute()}/conf']",
        f"+experiment=compare_{method}",
        *request.overrides,
    ]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=[*overrides, *more], return_hydra_config=True)


@pytest.mark.parametrize("method", ["finetune", "dapt_tapt", "mt_tartan", "tapt_meta_tartan"])
def test_an_experiment_sets_length_and_looks_once(method, tmp_path):
    request = request_of([f"methods={method}", f"folder={tmp_path}", "encoder=tiny"])
    write_experiment(method, request, dict.fromkeys(METHODS[method], 24))
    config = composed(request, method)
    assert config.method.name == method
    for name in METHODS[method]:
        stage = config.method.stages[name]
        assert (stage.max_steps, stage.max_epochs, stage.batch_size) == (24, None, 32)
        assert stage.evaluate_every == (24 if name in ("finetune", "joint") else None)


def test_a_stage_that_an_option_enables_has_the_batch_size_when_measured_and_when_run(tmp_path):
    own = "mt_tartan:method.stages.last_finetune.enabled=true"
    request = request_of(["methods=mt_tartan", own, f"folder={tmp_path}", "batch_size=8"])
    for steps in (None, {"joint": 5, "last_finetune": 7}):
        write_experiment("mt_tartan", request, steps)
        stages = composed(request, "mt_tartan").method.stages
        assert (stages.joint.batch_size, stages.last_finetune.batch_size) == (8, 8)
    assert stages.last_finetune.max_steps == 7


def test_an_option_of_one_method_is_no_other_s(tmp_path):
    request = request_of(
        [
            "methods=finetune,mt_tartan", "mt_tartan:weighting=uniform", f"folder={tmp_path}",
            "mt_tartan:method.stages.joint.optimisation.body_lr=0.5",
        ]
    )  # fmt: skip
    for method in request.methods:
        write_experiment(method, request, dict.fromkeys(METHODS[method], 2))
    joint = composed(request, "mt_tartan")
    assert joint.method.stages.joint.optimisation.body_lr == 0.5
    assert joint.weighting["_target_"].endswith("Uniform")
    assert composed(request, "finetune").method.stages.finetune.optimisation.body_lr != 0.5


@pytest.mark.parametrize(
    ("given_options", "methods"),
    [
        ([], ("finetune", "tapt", "mt_tartan")),
        (["auxiliary.dapt.path=texts"], ("finetune", "tapt", "dapt_tapt", "mt_tartan")),
        (["auxiliary=none"], ("finetune",)),
        (["methods=meta_tartan,finetune"], ("finetune", "meta_tartan")),
    ],
)
def test_the_methods_are_those_that_have_a_task(given_options, methods):
    assert request_of(["task.train=t.csv", *given_options]).methods == methods


def test_domain_text_is_ten_times_the_labels_and_holds_no_held_out_text():
    overrides = request_of(["task.train=t.csv", "auxiliary.dapt.path=texts/"]).overrides
    assert {"auxiliary=own", "auxiliary.size=10", "auxiliary.decontaminate=true"} <= {*overrides}
    more = request_of(["auxiliary.dapt.path=texts/", "auxiliary.size=all"]).overrides
    assert [o for o in more if o.startswith("auxiliary.size")] == ["auxiliary.size=all"]


@pytest.mark.parametrize(
    "option",
    [
        "seed=3", "method=tapt", "evaluate_test=false", "max_steps=3", "encoder.lr.joint=1,2",
        "folds=0", "minutes=-1", "steps=many", "methods=nothing", "meta_tartan:weighting.eta=1",
        "encoder", "task.dev_share=0.5",
    ],
)  # fmt: skip
def test_what_the_comparison_decides_and_wrong_values_are_refused(option):
    with pytest.raises(UserError, match=option.partition("=")[0].partition(":")[0]):
        request_of([option])
