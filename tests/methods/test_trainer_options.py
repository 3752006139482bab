"""The Trainer's options are honoured."""

from __future__ import annotations

import warnings

import pytest
import torch
from lightning.pytorch.callbacks import (
    ModelCheckpoint,
)

from tartan import TartanData
from tartan.methods import FineTuning, MetaTartan
from tests.in_process import same
from tests.methods.lightning import EPOCH, fitted, state_of, toy_data

pytestmark = pytest.mark.slow


@pytest.fixture
def data(data_dir, cache_dir) -> TartanData:
    return toy_data(data_dir, cache_dir)


@pytest.fixture
def module(data):
    return FineTuning.for_data(data, lr=2e-3)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 7, "max_epochs": 2}, 7),
        ({"max_steps": 70, "max_epochs": 1}, EPOCH),
        ({"max_epochs": 2, "limit_train_batches": 0.5}, 6),
        ({"max_epochs": 2, "val_check_interval": 4}, 2 * EPOCH),
    ],
    ids=str,
)
def test_the_schedule_is_as_long_as_the_training(module, data, tmp_path, options, steps):
    seen = fitted(module, data, tmp_path, enable_checkpointing=False, **options)
    assert seen.steps == list(range(steps))
    falling = [rate / 2e-3 for rate in seen.rates]
    expected = module.optimisation.schedule(module.new_optimiser(), steps).lr_lambdas[0]
    assert falling == pytest.approx([expected(step) for step in range(steps)])
    assert seen.evaluated[-1] == steps  # training ends with an evaluation


@pytest.mark.parametrize(
    ("precision", "parameters", "features"),
    [
        ("32-true", torch.float32, torch.float32),
        ("bf16-mixed", torch.float32, torch.bfloat16),
        ("64-true", torch.float64, torch.float64),
    ],
)
def test_training_is_in_the_precision_that_is_asked_for(
    module, data, tmp_path, precision, parameters, features
):
    assert module.encoder.supports_packing  # which a pass before training found out
    found = set()
    last = module.body.encoder.layer[-1].output.dense
    last.register_forward_hook(lambda layer, inputs, output: found.add(output.dtype))
    fitted(module, data, tmp_path, max_steps=2, precision=precision, enable_checkpointing=False)
    assert {parameter.dtype for parameter in module.parameters()} == {parameters}
    assert found == {features}


def test_a_training_goes_on_from_lightnings_checkpoints_with_equal_bits(
    data_dir, cache_dir, tmp_path
):
    """In the middle of an epoch, before and after an evaluation there, and at an epoch's end."""

    def made():
        data = toy_data(data_dir, cache_dir)
        return MetaTartan.for_data(data, lr=2e-3), data

    often = {"max_epochs": 3, "val_check_interval": 4}
    module, data = made()
    points = [
        ModelCheckpoint(
            tmp_path / when, filename="{step}", save_top_k=-1, save_on_train_epoch_end=False, **how
        )
        for when, how in (("steps", {"every_n_train_steps": 2}), ("evaluations", {}))
    ]
    undisturbed = fitted(module, data, tmp_path, callbacks=points, **often)
    stops = [("steps", 4), ("steps", EPOCH), ("evaluations", 4), ("evaluations", 10)]
    for when, stop in stops:
        again, data = made()
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*dataloader is not resumable.*")
            point = tmp_path / when / f"step={stop}.ckpt"
            more = {"ckpt_path": point, "enable_checkpointing": False}
            seen = fitted(again, data, tmp_path, **often, **more)
        assert seen.steps == undisturbed.steps[stop:]
        assert seen.rates == undisturbed.rates[stop:]
        assert same(state_of(module), state_of(again))
        assert module.task_weights == again.task_weights
