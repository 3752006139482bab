"""A loss or gradient that is not finite costs its update, and too many in a row the run."""

from __future__ import annotations

import math

import pandas as pd
import pytest
import torch

import tartan.runs.run
from tartan.core.mixture import weighted_mean
from tartan.core.passes import Passes
from tartan.core.weighting.base import Weighting
from tartan.errors import UserError
from tartan.methods.checkpoint import load_checkpoint
from tartan.methods.module import TaskMixing
from tartan.methods.non_finite import StopAtNonFinite
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM
from tartan.vision.classification import ImageClassification
from tests.in_process import config_of, copied, same, toy

pytestmark = pytest.mark.slow


@pytest.fixture
def poisoned(monkeypatch):
    """Make an objective's losses `value` in the given steps (from 1), and watch every step."""
    states = []

    def call(objective, steps, value=float("nan")):
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


def run(options, folder):
    return tartan.runs.run.run_experiment(config_of(options), folder).as_json()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("objective", [Classification, MaskedLM])
@pytest.mark.parametrize(
    "options",
    [
        ["meta_tartan", "method.stages.joint.meta_head.fresh=false"],
        ["mt_tartan", "weighting=dwa", "weighting.window=1"],
        ["mt_tartan", "weighting=uncertainty"],
        ["meta_tartan", "weighting=meta_examples"],
    ],
    ids=lambda options: " ".join(options[:2]),
)
def test_such_a_step_changes_nothing_and_is_counted(
    value, objective, options, poisoned, data_dir, cache_dir, tmp_path
):
    states = poisoned(objective, {2, 3, 5}, value)
    result = run(toy(data_dir, cache_dir, *options), tmp_path)
    changed = [not same(before, after) for before, after in states]
    assert changed == [True, False, False, True, False, True]
    assert result["stages"][0]["skipped"] == 3
    table = pd.read_csv(tmp_path / "steps.csv")
    assert list(table.groupby("step")["skipped"].max()) == [0, 1, 1, 0, 1, 0]
    assert all(bool(v.isfinite().all()) for v in states[-1][1].values() if v.is_floating_point())


def test_gradients_that_overflow_while_losses_do_not_are_noticed(
    poisoned, data_dir, cache_dir, tmp_path
):
    states = poisoned(Classification, {2}, 1e38)
    result = run(toy(data_dir, cache_dir, "finetune"), tmp_path)
    assert result["stages"][0]["skipped"] == 1
    assert same(*states[1])


def test_batch_norms_statistics_are_put_back_too(poisoned, tmp_path):
    options = [
        "+experiment=digits_meta", "encoder.depth=10", "encoder.width=1", "max_steps=3",
        "trainer.enable_progress_bar=false",
    ]  # fmt: skip
    states = poisoned(ImageClassification, {2})
    run(options, tmp_path)
    assert any("running_mean" in name for name in states[0][0])
    assert [same(*pair) for pair in states] == [False, True, False]


def test_an_optimiser_without_a_fused_kernel_skips_too(
    poisoned, monkeypatch, data_dir, cache_dir, tmp_path
):
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *a, **k: adamw(*a, **(k | {"fused": False})))
    states = poisoned(MaskedLM, {3})
    run(toy(data_dir, cache_dir, "mt_tartan"), tmp_path)
    assert [same(*pair) for pair in states] == [False, False, True, False, False, False]


@pytest.mark.parametrize(("method", "task"), [("finetune", "end_task"), ("meta_tartan", "dapt")])
def test_five_in_a_row_end_the_run_with_the_best_checkpoint_intact(
    method, task, poisoned, data_dir, cache_dir, tmp_path
):
    objective = Classification if task == "end_task" else MaskedLM
    poisoned(objective, set(range(3, 99)))
    stage = "finetune" if method == "finetune" else "joint"
    options = ["max_steps=40", f"method.stages.{stage}.evaluate_every=2"]
    options.append(f"method.stages.{stage}.patience=null")
    with pytest.raises(UserError) as caught:
        run(toy(data_dir, cache_dir, method, *options), tmp_path)
    message = str(caught.value)
    assert f"stage {stage}, step 7: the loss of task {task} is not finite, and" in message
    assert "5 updates in a row were skipped" in message
    assert len(message.splitlines()) == 1
    (path,) = (tmp_path / "checkpoints" / stage).glob("best-*.ckpt")
    best = load_checkpoint(path)
    assert all(bool(v.isfinite().all()) for v in best["state_dict"].values())
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("method", ["finetune", "mt_tartan"])
def test_a_run_that_skipped_every_update_is_no_success(
    method, poisoned, data_dir, cache_dir, tmp_path
):
    poisoned(Classification, {1, 2, 3})
    options = toy(data_dir, cache_dir, method, "max_steps=2", "checkpoint_minutes=1e-9")
    line = "step 2: the loss of task end_task is not finite, and all 2 updates were skipped"
    with pytest.raises(UserError, match=line):
        run(options, tmp_path)
    assert not (tmp_path / "result.json").exists()
    with pytest.raises(UserError, match=r"all 2 updates were skipped"):
        run(options, tmp_path)  # which goes on after the first step


class NanW(Weighting):
    """Weights that are no numbers."""

    def mix(self, step):
        return weighted_mean(step.gradients(), torch.full((3,), float("nan")))


def test_weights_that_are_not_finite_are_named(data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "mt_tartan")
    config = config_of(options)
    config.weighting = {"_target_": f"{__name__}.NanW"}
    line = "a weight is not finite, and 5 updates"
    with pytest.raises(UserError, match=line):
        tartan.runs.run.run_experiment(config, tmp_path)


@pytest.mark.parametrize("order", ["update_then_step", "step_then_update"])
def test_a_validation_batch_that_is_not_finite_does_not_stay_in_the_logits(
    order, monkeypatch, data_dir, cache_dir, tmp_path
):
    gradient, steps = Passes.gradient, []

    def broken(self, purpose, task, batch, **options):
        if purpose.kind != "meta_gradient":
            return gradient(self, purpose, task, batch, **options)
        steps.append(len(steps))
        losses = type(task.objective).losses
        if len(steps) == 3:
            monkeypatch.setattr(
                type(task.objective), "losses", lambda *own: losses(*own) * math.nan
            )
        try:
            return gradient(self, purpose, task, batch, **options)
        finally:
            monkeypatch.setattr(type(task.objective), "losses", losses)

    monkeypatch.setattr(Passes, "gradient", broken)
    result = run(toy(data_dir, cache_dir, "meta_tartan", f"weighting.order={order}"), tmp_path)
    assert len(steps) == 6
    assert result["stages"][0]["skipped"] == 1
    assert all(0 < weight < 1 for weight in result["final_task_weights"].values())


def test_a_run_whose_last_step_is_skipped_reports_the_weights_before_it(
    poisoned, data_dir, cache_dir, tmp_path
):
    poisoned(MaskedLM, {6})
    result = run(toy(data_dir, cache_dir, "meta_tartan"), tmp_path)
    table = pd.read_csv(tmp_path / "steps.csv")
    fifth = table[table["step"] == 5].set_index("task")["weight"]
    assert result["final_task_weights"] == pytest.approx(dict(fifth), abs=1e-5)


def test_the_count_in_a_checkpoint_is_that_of_its_step():
    callback = StopAtNonFinite(patience=5, read_every=50)
    callback._pending = [(n, torch.tensor(f), None) for n, f in enumerate([True, False, False])]
    assert callback.state_dict() == {"in_a_row": 2}
    assert len(callback._pending) == 3
