"""The command line of a comparison."""

from __future__ import annotations

import pytest
import yaml

from tartan.compare.budget import METHODS
from tartan.compare.experiments import evaluations_of, experiment_of, stage_options
from tartan.compare.main import _HELP
from tartan.compare.request import check_domain_text, request_of
from tartan.errors import UserError
from tests.conftest import ROOT


def test_its_own_options_are_apart_from_those_of_the_runs():
    request = request_of(["seeds=2", "task=files", "steps=50", "+x.y=1", "hydra/launcher=slurm"])
    assert (request.seeds, request.steps, request.batch_size) == (2, 50, 32)
    assert request.overrides == (
        "task=files",
        "+x.y=1",
        "hydra/launcher=slurm",
        "auxiliary=dapt_tapt",
    )
    assert request.methods == ("finetune", "tapt", "dapt", "mt_tartan", "meta_tartan")


@pytest.mark.parametrize("share", ["0", "0.0"])
def test_a_comparison_needs_a_test_split(share):
    with pytest.raises(UserError, match=f"^task.test_share={share} leaves no test split, on which"):
        request_of([f"task.test_share={share}"])
    assert "task.test_share=0.1" in request_of(["task.test_share=0.1"]).overrides


@pytest.mark.parametrize("swept", ["encoder.hidden_size=32,128", "seed_x=range(3)", "task=a,b"])
def test_a_comparison_has_one_value_of_each_option(swept):
    with pytest.raises(UserError, match="a comparison has one value of each option; run one"):
        request_of([swept])
    quoted = 'task.text_columns="a,b"'
    assert quoted in request_of([quoted]).overrides


def test_an_empty_folder_is_refused():
    with pytest.raises(UserError, match=r"^folder= is empty"):
        request_of(["folder="])


def test_an_option_of_one_method_names_it():
    request = request_of(["meta_tartan:weighting.eta=0.1", "task=digits"])
    assert request.own_options == (("meta_tartan", "weighting.eta", "0.1"),)
    assert "task=digits" in request.overrides


def test_a_stage_that_an_own_option_enables_gets_its_share_of_the_steps():
    enabled = "mt_tartan:method.stages.last_finetune.enabled=true"
    request = request_of([enabled, "task=digits"])
    found = experiment_of("mt_tartan", request, {"joint": 50, "last_finetune": 200})
    stages = found["method"]["stages"]
    assert (stages["joint"]["max_steps"], stages["last_finetune"]["max_steps"]) == (50, 200)
    assert stages["last_finetune"]["max_epochs"] is None
    assert stages["last_finetune"]["enabled"] is True


@pytest.mark.parametrize("owner", ["mt_tartan:", "", "++"])
def test_a_stage_that_an_option_enables_is_piloted_as_it_is_trained(owner):
    enabled = f"{owner}method.stages.last_finetune.enabled=true"
    request = request_of([enabled, "batch_size=8", "task=digits"])
    pilot = experiment_of("mt_tartan", request, None)["method"]["stages"]
    found = pilot["last_finetune"]
    assert (found["batch_size"], found["patience"]) == (8, None)
    assert pilot["joint"]["batch_size"] == 8
    other = experiment_of("finetune", request, None)["method"]["stages"]
    assert ("last_finetune" in other) == (owner != "mt_tartan:")


def test_a_batch_size_of_ones_own_is_the_pilots_too():
    option = "mt_tartan:method.stages.last_finetune.batch_size=64"
    pilot = experiment_of("mt_tartan", request_of([option, "task=digits"]), None)
    assert pilot["method"]["stages"]["last_finetune"] == {"batch_size": 64, "patience": None}


def test_mt_tartan_has_what_dev_chose_unless_told_otherwise():
    stages = {"joint": 50}
    found = experiment_of("mt_tartan", request_of(["auxiliary=tapt"]), stages)
    assert found["defaults"][1] == {"override /weighting": "end_task_share"}
    assert found["method"]["stages"]["joint"]["optimisation"]["end_head_lr"].startswith("${")
    custom = yaml.safe_load((ROOT / "conf" / "experiment" / "custom_mt.yaml").read_text())
    assert found["defaults"][1] in custom["defaults"]
    joint = custom["method"]["stages"]["joint"]
    assert found["method"]["stages"]["joint"]["optimisation"] == joint["optimisation"]
    told = [
        "mt_tartan:weighting=uniform",
        "mt_tartan:method.stages.joint.optimisation.end_head_lr=1",
    ]
    found = experiment_of("mt_tartan", request_of(told), stages)
    assert found["defaults"][1] == {"override /weighting": "uniform"}
    assert found["method"]["stages"]["joint"]["optimisation"] == {"end_head_lr": 1}
    images = experiment_of("mt_tartan", request_of(["auxiliary=other_classes"]), stages)
    assert images["defaults"] == [{"override /method": "mt_tartan"}]
    assert "optimisation" not in images["method"]["stages"]["joint"]


def test_an_option_below_a_value_is_one_line():
    option = "method.stages.joint.batch_size.x=3"
    request = request_of([f"meta_tartan:{option}"])
    with pytest.raises(UserError, match=f"^{option}: batch_size is a value, below which"):
        experiment_of("meta_tartan", request, {"joint": 50})


def test_the_help_names_every_method():
    assert [method for method in METHODS if method not in _HELP] == []


@pytest.mark.parametrize("evaluations", [1, 2, 7, 10])
def test_stages_that_are_long_enough_are_evaluated_equally_often(evaluations):
    for steps in range((evaluations - 1) ** 2 + 1, 400):
        assert evaluations_of(steps, evaluations) == evaluations


@pytest.mark.parametrize(("steps", "evaluations"), [(20, 10), (25, 9), (41, 9), (90, 10), (3, 3)])
def test_the_evaluations_of_a_stage_are_those_that_its_options_give(steps, evaluations):
    every = stage_options("joint", steps, 32, 10)["evaluate_every"]
    counted = [step for step in range(1, steps + 1) if step % every == 0 or step == steps]
    assert evaluations_of(steps, 10) == len(counted) == evaluations


@pytest.mark.parametrize(("auxiliary", "missing"), [("tapt", "dapt"), ("dapt", "tapt")])
def test_a_method_without_its_auxiliary_task_is_left_out(auxiliary, missing):
    assert missing not in request_of([f"auxiliary={auxiliary}"]).methods
    assert auxiliary in request_of([f"auxiliary={auxiliary}"]).methods


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("seeds=0", "seeds: "),
        ("steps=many", "steps: "),
        ("seed=0,1", "seeds=3"),
        ("method=tapt", "methods="),
        ("+experiment=acl_arc_meta", "task="),
        ("max_steps=5", "steps="),
        ("hydra.sweep.dir=x", "folder="),
        ("methods=finetune,tapd", "there is no tapd; there are finetune, tapt"),
        (
            "aang:weighting.eta=0.1",
            "aang:weighting.eta=0.1: aang is not compared; the methods are finetune, tapt, dapt",
        ),
        ("verbose", "NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_to_do(argument, words):
    with pytest.raises(UserError) as error:
        request_of([argument])
    assert words in str(error.value)
    assert "\n" not in str(error.value)


OWN_TABLE = ["task=files", "task.train=labels.csv"]


@pytest.mark.parametrize(
    ("options", "method"),
    [([], "dapt"), (["auxiliary=dapt", "methods=finetune,mt_tartan"], "mt_tartan")],
)
def test_a_table_without_domain_text_is_told_before_anything_is_counted(options, method):
    with pytest.raises(
        UserError, match=rf"^{method} needs domain text: auxiliary\.dapt\.path=FILE"
    ):
        check_domain_text(request_of([*OWN_TABLE, *options]))


@pytest.mark.parametrize(
    "options",
    [
        [*OWN_TABLE, "auxiliary.dapt.path=texts"],
        [*OWN_TABLE, "+auxiliary.dapt.hub=some/texts"],
        [*OWN_TABLE, "task.domain=texts.txt"],
        [*OWN_TABLE, "auxiliary=tapt"],
        [*OWN_TABLE, "methods=finetune,tapt"],
        ["task=docstrings"],
    ],
)
def test_other_comparisons_need_none_or_have_it(options):
    check_domain_text(request_of(options))
