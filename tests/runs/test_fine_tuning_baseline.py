"""Fine-tuning at the cost of a run, beside the run."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import pytest

from tartan.errors import UserError
from tartan.methods.fit import OUTCOME
from tartan.methods.stage import Stage
from tartan.runs.baselines import at_equal_cost, requested_baseline
from tartan.runs.run import run_experiment
from tests.in_process import config_of, given_on_command_line, part, recorded_run, same, toy

ASKED = "+stage@fine_tuning_baseline=finetune"


def outcome(name, steps, evaluations, **flops):
    return SimpleNamespace(
        name=name, steps=steps, evaluations=[(0, 0.5)] * evaluations,
        cost=SimpleNamespace(flops=flops),
    )  # fmt: skip


def test_it_spends_what_all_stages_spent():
    asked = Stage("x", batch_size=16, max_epochs=10, patience=3)
    stages = {"tapt": Stage("x", max_steps=4, batch_size=64), "joint": Stage("y", max_steps=10)}
    stages["joint"].batch_size = 8
    outcomes = [
        outcome("tapt", 4, 0, tapt=400),
        outcome("joint", 10, 5, end_task=100, tapt=120, meta_gradient=60, meta_head=20),
    ]
    found = at_equal_cost(asked, stages, outcomes)
    # a step of the end task takes 10, all of it 700
    assert (found.max_steps, found.max_epochs, found.batch_size) == (70, None, 8)
    assert (found.evaluate_every, found.patience) == (14, None)


def test_a_steps_cost_is_that_of_a_stage_whose_body_is_trained_as_its_own():
    stages = {
        "probe": Stage("x", max_steps=10, batch_size=64, freeze_body=True),
        "joint": Stage("y", max_steps=10, batch_size=8),
    }
    outcomes = [outcome("probe", 10, 1, end_task=40), outcome("joint", 10, 1, end_task=100)]
    found = at_equal_cost(Stage("x", max_epochs=1), stages, outcomes)
    assert (found.max_steps, found.batch_size) == (14, 8)
    frozen = at_equal_cost(Stage("x", max_epochs=1, freeze_body=True), stages, outcomes)
    assert (frozen.max_steps, frozen.batch_size) == (35, 64)


@pytest.fixture(scope="module")
def options(data_dir, cache_dir):
    return toy(data_dir, cache_dir, "meta_tartan", "logger=none")


@pytest.fixture(scope="module")
def beside(options, tmp_path_factory):
    return recorded_run([*options, ASKED], tmp_path_factory.mktemp("beside"))


def test_it_starts_where_the_run_started(beside):
    assert beside.events == ["joint", "fine_tuning", "test", "test"]
    bodies = [part(beside.starts[name], "body") for name in ("joint", "fine_tuning")]
    assert same(*bodies)
    assert not same(bodies[0], part(beside.ends["joint"], "body"))


def test_its_cost_is_the_runs(beside):
    (stage,) = beside.result["stages"]  # the baseline is no stage of the run
    flops = stage["cost"]["flops"]
    step = flops["end_task"] / stage["steps"]
    baseline = beside.result["baselines"][0]
    steps = int(baseline["settings"].split()[0])
    assert abs(steps * step - sum(flops.values())) <= step / 2


@pytest.mark.parametrize("frozen", ["method.stages.finetune", "fine_tuning_baseline"])
def test_beside_a_run_with_the_body_frozen_otherwise_it_spends_the_same(
    frozen, data_dir, cache_dir, tmp_path
):
    options = toy(
        data_dir, cache_dir, "finetune", "max_steps=12", ASKED, f"{frozen}.freeze_body=true"
    )
    run_experiment(config_of([*options, "logger=none", "evaluate_test=false"]), tmp_path)
    paths = {path.relative_to(tmp_path).parts[0]: path for path in tmp_path.rglob(OUTCOME)}
    spent, steps = {}, {}
    for name, path in paths.items():
        stored = json.loads(path.read_text())
        spent[name], steps[name] = sum(stored["cost"]["flops"].values()), stored["steps"]
    baseline = spent.pop("fine_tuning")
    step = baseline / steps.pop("fine_tuning")
    (run,) = spent.values()
    # half a step, and what the head, which is trained in both, and the texts' lengths differ by
    assert baseline == pytest.approx(run, abs=step / 2 + 0.1 * run)


def test_the_run_is_not_changed_by_it(beside, options, tmp_path):
    alone = recorded_run(options, tmp_path)
    assert same(alone.tested, beside.tested)  # the run itself meets test last
    for entry in ("dev", "test", "stages", "cost"):
        mine, other = alone.result[entry], beside.result[entry]
        if entry == "stages":
            mine, other = ([{**s, "measured": None} for s in own] for own in (mine, other))
        assert mine == other
    names = [baseline["name"] for baseline in beside.result["baselines"]]
    assert names == ["fine_tuning", "tf_idf"]
    assert [b["name"] for b in alone.result["baselines"]] == ["tf_idf"]


def test_a_run_that_was_stopped_before_its_result_ends_with_the_same(beside, options, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(beside.folder, folder)
    (folder / "result.json").unlink()
    shutil.rmtree(folder / "fine_tuning")  # it had not begun
    again = run_experiment(config_of([*options, ASKED]), folder).as_json()
    for mine, other in zip(again["baselines"], beside.result["baselines"], strict=True):
        assert {**mine, "seconds": None} == {**other, "seconds": None}


def test_without_test_it_has_none(options, tmp_path):
    quick = [*options, ASKED, "evaluate_test=false", "max_steps=1"]
    result = run_experiment(config_of(quick), tmp_path)
    assert [baseline.test for baseline in result.baselines] == [None, None]


def test_what_is_no_fine_tuning_is_refused(options):
    for wrong in (
        [*options, "+stage@fine_tuning_baseline=mt_joint"],
        ["+experiment=pretrain", "auxiliary.dapt.path=texts.txt", ASKED],
    ):
        with pytest.raises(UserError, match="fine_tuning_baseline trains the end task alone"):
            requested_baseline(config_of(wrong))
    assert requested_baseline(config_of(options)) is None


@pytest.mark.parametrize(
    "option", ["batch_size=4", "max_steps=3", "max_epochs=1", "evaluate_every=2", "patience=null"]
)
@pytest.mark.parametrize("plus", ["", "++"])
def test_what_follows_the_run_is_not_given_on_the_command_line(option, plus, options, monkeypatch):
    name = f"fine_tuning_baseline.{option.partition('=')[0]}"
    given_on_command_line([*options, ASKED, f"{plus}fine_tuning_baseline.{option}"], monkeypatch)
    with pytest.raises(UserError, match=rf"^{name} follows the run; omit it$"):
        requested_baseline(config_of([*options, ASKED]))


def test_the_options_of_its_optimiser_are_its_own(options, monkeypatch):
    own = [*options, ASKED, "fine_tuning_baseline.optimisation.body_lr=1e-4"]
    given_on_command_line(own, monkeypatch)
    assert requested_baseline(config_of(own)).optimisation.body_lr == 1e-4


def test_a_baseline_that_is_not_enabled_is_none(options):
    assert requested_baseline(config_of([*options, ASKED])) is not None
    off = [*options, ASKED, "fine_tuning_baseline.enabled=false"]
    assert requested_baseline(config_of(off)) is None
