"""A program of the modules and the command line train the same, bit for bit."""

from __future__ import annotations

import torch
from safetensors.torch import load_file

from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan
from tests.in_process import recorded_run, same, toy
from tests.methods.lightning import state_of, toy_data, trainer


def test_meta_tartan_by_program_is_that_of_the_command_line(data_dir, cache_dir, tmp_path):
    """Best step, every weight and buffer, the scores on test and the classifier's files."""
    stage = "method.stages.joint"
    own = [
        "auxiliary.size=all", "weighting.eta=0.1", f"{stage}.optimisation.body_lr=2e-3",
        f"{stage}.optimisation.end_head_lr=1e-2", f"{stage}.evaluate_every=2", "max_steps=10",
        f"{stage}.patience=null",
    ]  # fmt: skip
    run = recorded_run(toy(data_dir, cache_dir, "meta_tartan", *own), tmp_path / "run")
    auxiliaries = {"dapt": data_dir / "corpus.txt", "tapt": "task"}
    data = toy_data(data_dir, cache_dir, auxiliaries=auxiliaries)
    module = MetaTartan.for_data(data, lr=2e-3, head_lr=1e-2, eta=0.1)
    running = trainer(
        tmp_path, max_steps=10, val_check_interval=2, check_val_every_n_epoch=None,
        precision="32-true",
    )  # fmt: skip
    running.fit(module, datamodule=data)
    assert module.task_weights == run.result["final_task_weights"]
    (tested,) = running.test(module, datamodule=data, ckpt_path="best", verbose=False)
    assert running.checkpoint_callback.best_model_path.endswith(
        f"step={run.result['chosen']['step']}.ckpt"
    )
    assert same(state_of(module), run.tested)
    assert tested["test/macro_f1"] == run.result["test"]["whole"]["metrics"]["macro_f1"]
    module.save_pretrained(tmp_path / "classifier")
    ours = load_file(tmp_path / "classifier" / "model.safetensors")
    theirs = load_file(tmp_path / "run" / "classifier" / "model.safetensors")
    assert same(ours, theirs)


def test_a_chain_by_program_is_that_of_the_command_line(data_dir, cache_dir, tmp_path):
    """DAPT, then fine-tuning on the body that it leaves."""
    own = ["auxiliary.size=all", "encoder.lr.pretrain=2e-3", "encoder.lr.finetune=1e-3"]
    run = recorded_run(toy(data_dir, cache_dir, "dapt", *own), tmp_path / "run")
    data = toy_data(data_dir, cache_dir, auxiliaries={"dapt": data_dir / "corpus.txt"})
    pretraining = ContinuedPretraining.for_data(data, lr=2e-3, stage="dapt")
    options = {"max_steps": 6, "precision": "32-true", "enable_checkpointing": False}
    trainer(tmp_path, **options).fit(pretraining, datamodule=data)
    assert same(state_of(pretraining), run.ends["dapt"])
    module = FineTuning.for_data(data, lr=1e-3)
    assert same(state_of(module), run.starts["finetune"])
    running = trainer(tmp_path, **{**options, "enable_checkpointing": True})
    running.fit(module, datamodule=data)
    found = torch.load(running.checkpoint_callback.best_model_path, weights_only=True)
    del found["state_dict"]["skipped"]
    assert same(found["state_dict"], run.ends["finetune"])
