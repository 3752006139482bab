"""A loss or gradient that is not finite costs its update, and too many in a row the run."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import tartan.runs.run
from tartan.core.passes import Passes
from tartan.errors import UserError
from tartan.methods.checkpoint import load_checkpoint
from tartan.methods.module import TaskMixing
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM
from tests.in_process import config_of, copied, same, toy

pytestmark = pytest.mark.slow


@pytest.fixture
def poisoned(monkeypatch):
    """Make an objective's losses `value` in the given steps (from 1), and watch every step."""
    states = []

    def call(objective, steps, value=math.nan):
        losses, training_step, now = objective.losses, TaskMixing.training_step, [0]

        def broken(self, *args):
            found = losses(self, *args)
            return found * value if now[0] in steps else found

        def watched(self, batch, batch_idx):
            now[0] += 1
            before = copied(self)
            training_step(self, batch, batch_idx)
            states.append((before, copied(self)))

        monkeypatch.setattr(objective, "losses", broken)
        monkeypatch.setattr(TaskMixing, "training_step", watched)
        return states

    return call


@pytest.fixture
def run(data_dir, cache_dir, tmp_path):
    def call(*options):
        config = config_of(toy(data_dir, cache_dir, *options))
        return tartan.runs.run.run_experiment(config, tmp_path).as_json()

    return call


@pytest.mark.parametrize(
    ("options", "objective", "value"),
    [
        (["meta_tartan", "method.stages.joint.meta_head.fresh=false"], Classification, math.nan),
        (["mt_tartan", "weighting=dwa", "weighting.window=1"], MaskedLM, math.nan),
        (["mt_tartan", "weighting=uncertainty"], Classification, 1e38),  # gradients overflow
        (["meta_tartan"], MaskedLM, math.inf),
    ],
)
def test_such_a_step_changes_nothing_and_is_counted(
    options, objective, value, poisoned, run, tmp_path
):
    states = poisoned(objective, {2, 3, 6}, value)
    result = run(*options)
    changed = [not same(before, after) for before, after in states]
    assert changed == [True, False, False, True, True, False]
    assert result["stages"][0]["skipped"] == 3
    table = pd.read_csv(tmp_path / "steps.csv")
    assert list(table.groupby("step")["skipped"].max()) == [0, 1, 1, 0, 0, 1]
    assert all(bool(v.isfinite().all()) for v in states[-1][1].values() if v.is_floating_point())
    fifth = table[table["step"] == 5].set_index("task")["weight"]
    assert result["final_task_weights"] == pytest.approx(dict(fifth), abs=1e-5)


def test_five_in_a_row_end_the_run_with_the_best_checkpoint_intact(poisoned, run, tmp_path):
    poisoned(MaskedLM, set(range(3, 99)))
    stage = "method.stages.joint"
    options = ["max_steps=40", f"{stage}.evaluate_every=2", f"{stage}.patience=null"]
    with pytest.raises(UserError, match=r"step 7 .*nan.* 5 updates in a row"):
        run("meta_tartan", *options)
    assert pd.read_csv(tmp_path / "steps.csv")["step"].max() == 7  # those before the failure
    (path,) = (tmp_path / "checkpoints" / "joint").glob("best-*.ckpt")
    best = load_checkpoint(path)
    assert all(bool(v.isfinite().all()) for v in best["state_dict"].values())
    assert not (tmp_path / "result.json").exists()


def test_a_run_that_skipped_every_update_is_no_success(poisoned, run, tmp_path):
    poisoned(Classification, {1, 2, 3})
    for _ in range(2):  # the second time it goes on after the first step
        with pytest.raises(UserError, match="2 updates in a row were skipped"):
            run("finetune", "max_steps=2", "checkpoint_minutes=1e-9")
    assert not (tmp_path / "result.json").exists()


def test_an_evaluation_ends_a_stage_of_skipped_updates_where_steps_are_not_waited_for(
    poisoned, run, monkeypatch
):
    monkeypatch.setattr("tartan.methods.module.is_cpu", lambda device: False)
    poisoned(Classification, set(range(1, 9)))
    options = ["max_steps=8", "non_finite_patience=2", "method.stages.finetune.evaluate_every=3"]
    with pytest.raises(UserError, match=r"step 3 .*3 updates in a row were skipped"):
        run("finetune", *options)


def test_a_validation_batch_that_is_not_finite_does_not_stay_in_the_logits(monkeypatch, run):
    gradient, steps = Passes.gradient, []

    def broken(self, purpose, task, batch, **options):
        kind = type(task.objective)
        losses = kind.losses
        steps.append(purpose.kind)
        if purpose.kind == "meta_gradient" and steps.count("meta_gradient") == 3:
            monkeypatch.setattr(kind, "losses", lambda *own: losses(*own) * math.nan)
        try:
            return gradient(self, purpose, task, batch, **options)
        finally:
            monkeypatch.setattr(kind, "losses", losses)

    monkeypatch.setattr(Passes, "gradient", broken)
    result = run("meta_tartan", "weighting.order=step_then_update")
    assert result["stages"][0]["skipped"] == 1
    assert all(0 < weight < 1 for weight in result["final_task_weights"].values())
