"""Equal cost, the experiments that are written, and the options of a comparison."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st

from tartan.compare.main import _sweep
from tartan.compare.plan import METHODS, equal_steps, evaluations_of, write_experiment
from tartan.compare.request import request_of
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.in_process import STAGES

COSTS = st.fixed_dictionaries(
    {
        method: st.fixed_dictionaries({stage: st.floats(1e9, 5e10) for stage in stages})
        for method, stages in METHODS.items()
    }
)


def test_the_stages_are_those_of_the_configs():
    found = {method: list(stages) for method, stages in METHODS.items()}
    assert found == {method: STAGES[method] for method in METHODS}


def test_a_method_with_two_stages_spends_half_on_each():
    costs = {"finetune": {"finetune": 2.0}, "dapt": {"dapt": 5.0, "finetune": 2.0}}
    assert equal_steps(costs | {"meta_tartan": {"joint": 10.0}}, 100) == {
        "finetune": {"finetune": 500},
        "dapt": {"dapt": 100, "finetune": 250},
        "meta_tartan": {"joint": 100},
    }


@given(COSTS, st.integers(50, 1000))
def test_every_method_spends_the_budget_but_for_half_a_step_a_stage(costs, steps):
    found = equal_steps(costs, steps)
    budget = steps * max(cost for stages in costs.values() for cost in stages.values())
    for method, stages in found.items():
        total = sum(costs[method][stage] * number for stage, number in stages.items())
        slack = sum(costs[method].values()) / 2
        assert total == pytest.approx(budget, abs=1.001 * slack)


@given(st.integers(2, 20), st.integers(1, 5000))
def test_long_stages_are_evaluated_as_often_as_was_asked(evaluations, steps):
    found = evaluations_of(steps, evaluations)
    assert found <= evaluations
    assert found == evaluations or steps <= (evaluations - 1) ** 2


def composed(request, *more):
    """The config of the comparison's first job."""
    overrides = _sweep(request, request.folder, "0")[5:]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=[*overrides, *more], return_hydra_config=True)


@pytest.mark.parametrize(
    "name", ["it", "my (new) runs", "a=b+c,d", "färg", "it's", 'say "x"', "\\"]
)
def test_a_folder_of_any_name_is_found(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (name, str(tmp_path / "above" / name)):
        request = request_of([f"folder={folder}", "methods=finetune", "batch_size=7"])
        write_experiment("finetune", request, {"finetune": 50})
        config = composed(request)
        assert config.hydra.sweep.dir == folder
        stage = config.method.stages.finetune
        assert (stage.batch_size, stage.max_steps, stage.evaluate_every) == (7, 50, 5)
        assert stage.patience is None


@pytest.mark.parametrize("method", METHODS)
def test_the_experiment_of_each_method_composes(method, tmp_path):
    auxiliary = {"pretrain": "other_classes", "aang": "aang_td", "aang_static": "aang_td"}
    chosen = auxiliary.get(method, "dapt_tapt")
    request = request_of([f"folder={tmp_path}", f"methods={method}", f"auxiliary={chosen}"])
    write_experiment(method, request, dict.fromkeys(METHODS[method], 40))
    config = composed(request)
    assert config.method.name == method
    for stage in METHODS[method]:
        assert config.method.stages[stage].max_steps == 40


def test_options_of_single_methods_come_last_and_mt_tartan_has_what_dev_chose(tmp_path):
    own = ["mt_tartan:method.stages.joint.max_steps=9", "mt_tartan:weighting.share=0.8"]
    request = request_of([f"folder={tmp_path}", "methods=mt_tartan", "encoder=tiny", *own])
    write_experiment("mt_tartan", request, {"joint": 40})
    config = composed(request)
    assert (config.method.stages.joint.max_steps, config.weighting.share) == (9, 0.8)
    assert "EndTaskShare" in config.weighting._target_
    assert config.method.stages.joint.optimisation.end_head_lr == config.encoder.lr.finetune
    paper = request_of([f"folder={tmp_path}", "methods=mt_tartan", "mt_tartan:weighting=uniform"])
    write_experiment("mt_tartan", paper, {"joint": 40})
    assert "Uniform" in composed(paper).weighting._target_


def test_own_options_are_separated_from_those_of_the_runs():
    request = request_of(
        ["task=docstrings", "seeds=5", "methods=tapt,finetune,tapt", "~logger.csv"]
    )
    assert (request.seeds, request.steps, request.methods) == (5, 200, ("tapt", "finetune"))
    assert request.overrides == ("task=docstrings", "~logger.csv", "auxiliary=dapt_tapt")
    assert "seeds" not in request.identity()


@pytest.mark.parametrize(
    ("auxiliary", "methods"),
    [
        ("tapt", ("finetune", "tapt", "mt_tartan", "meta_tartan")),
        ("dapt", ("finetune", "dapt", "mt_tartan", "meta_tartan")),
        ("other_classes", ("finetune", "pretrain", "mt_tartan", "meta_tartan")),
    ],
)
def test_methods_are_those_that_have_an_auxiliary_task(auxiliary, methods):
    assert request_of([f"auxiliary={auxiliary}"]).methods == methods


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("seeds=0", "seeds: "),
        ("steps=many", "steps: "),
        ("seed=0", "the comparison decides that"),
        ("+experiment=acl_arc_meta", "the comparison decides that"),
        ("task.test_share=0.0", "the comparison decides that"),
        ("task.max_length=64,128", "one value of each option"),
        ("methods=finetune,tapd", "there is no tapd"),
        ("aang:weighting.eta=0.1", "aang has options but is not compared"),
        ("verbose", "NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_one_line(argument, words):
    with pytest.raises(UserError) as error:
        request_of([argument])
    assert words in str(error.value)
    assert "\n" not in str(error.value)
