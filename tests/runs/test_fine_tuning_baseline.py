"""Fine-tuning at the cost of a run, beside the run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tartan.errors import UserError
from tartan.methods.stage import Stage
from tartan.runs.outcome import at_equal_cost, requested_baseline
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
    frozen = stages | {"probe": Stage("x", max_steps=10, batch_size=64, freeze_body=True)}
    outcomes = [outcome("probe", 10, 1, end_task=40), outcomes[1]]
    found = at_equal_cost(Stage("x", max_epochs=1), frozen, outcomes)
    assert (found.max_steps, found.batch_size) == (34, 8)
    found = at_equal_cost(Stage("x", max_epochs=1, freeze_body=True), frozen, outcomes)
    assert (found.max_steps, found.batch_size) == (85, 64)


@pytest.fixture(scope="module")
def options(data_dir, cache_dir):
    return toy(data_dir, cache_dir, "meta_tartan", "logger=none")


@pytest.fixture(scope="module")
def beside(options, tmp_path_factory):
    return recorded_run([*options, ASKED], tmp_path_factory.mktemp("beside"))


def test_it_starts_where_the_run_started_and_costs_as_much(beside):
    assert beside.events == ["joint", "fine_tuning", "test", "test"]
    bodies = [part(beside.starts[name], "body") for name in ("joint", "fine_tuning")]
    assert same(*bodies)
    assert not same(bodies[0], part(beside.ends["joint"], "body"))
    (stage,) = beside.result["stages"]  # the baseline is no stage of the run
    flops = stage["cost"]["flops"]
    step = flops["end_task"] / stage["steps"]
    steps = int(beside.result["baselines"][0]["settings"].split()[0])
    assert abs(steps * step - sum(flops.values())) <= step / 2


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


def test_what_is_no_fine_tuning_is_refused(options):
    for wrong in (
        [*options, "+stage@fine_tuning_baseline=mt_joint"],
        ["+experiment=pretrain", "auxiliary.dapt.path=texts.txt", ASKED],
    ):
        with pytest.raises(UserError, match="fine_tuning_baseline trains the end task alone"):
            requested_baseline(config_of(wrong))
    assert requested_baseline(config_of(options)) is None


def test_what_follows_the_run_is_not_given_on_the_command_line(options, monkeypatch):
    given_on_command_line([*options, ASKED, "fine_tuning_baseline.max_steps=3"], monkeypatch)
    with pytest.raises(UserError, match=r"^fine_tuning_baseline.max_steps follows the run"):
        requested_baseline(config_of([*options, ASKED]))
