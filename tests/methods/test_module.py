"""What a module of one's own may add, and what training leaves alone."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan
from tartan.vision.wide_resnet import WideResNetSource
from tests.methods.lightning import fitted, toy_data, trainer


class WithALayer(FineTuning):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = nn.Linear(2, 2)


class WithAFrozenLayer(FineTuning):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = nn.Linear(2, 2).requires_grad_(False)


class Saving(FineTuning):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.save_hyperparameters()


def test_parameters_that_no_step_trains_are_named(data_dir, cache_dir, tmp_path, caplog):
    data = toy_data(data_dir, cache_dir)
    for kind, is_said in ((WithALayer, True), (WithAFrozenLayer, False), (FineTuning, False)):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            fitted(kind.for_data(data, lr=1e-3), data, tmp_path / kind.__name__, max_steps=1)
        assert ("WithALayer.extra.weight is part of neither" in caplog.text) is is_said
        assert ("is part of neither" in caplog.text) is is_said


def test_arguments_are_not_stored_twice(data_dir, cache_dir):
    with pytest.raises(UserError, match="save_hyperparameters: the arguments of a module are in"):
        Saving.for_data(toy_data(data_dir, cache_dir), lr=1e-3)


def test_a_weighting_is_not_given_by_its_name(data_dir, cache_dir):
    with pytest.raises(UserError, match=r"'uniform' is a name; give the class"):
        MetaTartan.for_data(toy_data(data_dir, cache_dir), lr=1e-3, weighting="uniform")


def test_training_leaves_the_programs_random_numbers_alone(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = MetaTartan.for_data(data, lr=1e-3)
    before = torch.random.get_rng_state()
    fitted(module, data, tmp_path, max_steps=7)  # more than an epoch, with an evaluation
    assert torch.equal(before, torch.random.get_rng_state())


def test_there_is_nothing_to_validate_without_the_end_task_or_held_out_text(
    data_dir, cache_dir, tmp_path
):
    data = toy_data(data_dir, cache_dir)
    module = ContinuedPretraining.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match=r"trainer\.validate: this module does not train the end"):
        trainer(tmp_path).validate(module, datamodule=data)


def test_making_a_module_seeds_no_generator_but_its_own(data_dir, cache_dir, monkeypatch):
    """`torch.manual_seed` would seed those of GPUs too, which nothing here puts back."""
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("seeds every device"))
    MetaTartan.for_data(toy_data(data_dir, cache_dir), lr=1e-3)
    WideResNetSource(depth=10, width=1, mean=[0.5], std=[0.5]).load()


def test_an_end_task_without_names_of_its_labels_is_refused(data_dir, cache_dir):
    prepared = toy_data(data_dir, cache_dir).prepared
    with pytest.raises(UserError, match=r"labels has 0 names; .* labels=data\.prepared"):
        MetaTartan(prepared.encoder, {"end_task": prepared.classification})
    given = MetaTartan(
        prepared.encoder,
        {"end_task": prepared.classification, "tapt": prepared.objective("tapt")},
        labels=prepared.end_task.labels,
        max_length=32,
    )
    assert given(["a text"]).shape == (1, 3)
