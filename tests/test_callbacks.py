"""The `callbacks` group drives a run, and no option of the Trainer is swallowed."""

from __future__ import annotations

import csv

import pytest
import torch

from tartan.errors import UserError
from tartan.methods import FineTuning
from tests.in_process import recorded_run, toy

STAGE = "method.stages.finetune"


def test_callbacks_drive_a_run(data_dir, cache_dir, tmp_path):
    """Early stopping ends it, a checkpoint can be loaded, and rates are logged."""
    own = [
        "callbacks=[early_stopping,model_checkpoint,learning_rate_monitor]",
        "callbacks.early_stopping.min_delta=2", "callbacks.early_stopping.patience=2",
        "callbacks.model_checkpoint.save_top_k=-1", "max_steps=40", "trainer.log_every_n_steps=1",
        f"{STAGE}.evaluate_every=2", f"{STAGE}.patience=null",
    ]  # fmt: skip
    run = recorded_run(toy(data_dir, cache_dir, "finetune", *own), tmp_path)
    (stage,) = run.result["stages"]
    assert [step for step, _ in stage["evaluations"]] == [2, 4, 6]
    kept = sorted((tmp_path / "checkpoints" / "finetune" / "kept").glob("*.ckpt"))
    assert [path.name for path in kept] == ["step=2.ckpt", "step=4.ckpt", "step=6.ckpt"]
    again = FineTuning.load_from_checkpoint(kept[-1])
    assert stage["best_step"] == 6
    state = again.state_dict()
    assert all(torch.equal(state[name], value) for name, value in run.tested.items())
    with (tmp_path / "logs" / "finetune" / "metrics.csv").open() as file:
        assert any(name.startswith("lr-AdamW") for name in next(csv.reader(file)))


def test_callbacks_of_dev_are_left_out_of_stages_without_evaluations(
    data_dir, cache_dir, tmp_path, caplog
):
    own = ["callbacks=[early_stopping,model_checkpoint]", "max_steps=2"]
    run = recorded_run(toy(data_dir, cache_dir, "tapt", *own), tmp_path)
    assert [stage["steps"] for stage in run.result["stages"]] == [2, 2]
    for name in ("early_stopping", "model_checkpoint"):
        assert sum(f"is trained without {name}" in message for message in caplog.messages) == 1
    assert (tmp_path / "checkpoints" / "finetune" / "kept").is_dir()
    assert not (tmp_path / "checkpoints" / "tapt" / "kept").exists()


def test_what_lightning_refuses_when_training_begins_is_one_line(data_dir, cache_dir, tmp_path):
    own = ["+callbacks.mine._target_=lightning.pytorch.callbacks.DeviceStatsMonitor",
           "logger=none", "max_steps=1"]  # fmt: skip
    with pytest.raises(UserError, match=r"^Lightning refuses callbacks or trainer: Cannot use"):
        recorded_run(toy(data_dir, cache_dir, "finetune", *own), tmp_path)


def test_a_time_limit_before_any_evaluation_is_one_line(data_dir, cache_dir, tmp_path):
    own = ["+trainer.max_time=00:00:00:00", "max_steps=20"]
    with pytest.raises(UserError, match="ended before any evaluation"):
        recorded_run(toy(data_dir, cache_dir, "finetune", *own), tmp_path)
