"""What a module of one's own may add, and what training leaves alone."""

from __future__ import annotations

import pytest
import torch

from tartan.errors import UserError
from tartan.methods import FineTuning, MetaTartan
from tartan.vision.wide_resnet import WideResNetSource
from tests.methods.lightning import fitted, toy_data


class Saving(FineTuning):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.save_hyperparameters()


def test_arguments_are_not_stored_twice(data_dir, cache_dir):
    with pytest.raises(UserError, match="without save_hyperparameters"):
        Saving.for_data(toy_data(data_dir, cache_dir), lr=1e-3)


def test_training_leaves_the_programs_random_numbers_alone(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = MetaTartan.for_data(data, lr=1e-3)
    before = torch.random.get_rng_state()
    fitted(module, data, tmp_path, max_steps=7)  # more than an epoch, with an evaluation
    assert torch.equal(before, torch.random.get_rng_state())


def test_making_a_module_seeds_no_generator_but_its_own(data_dir, cache_dir, monkeypatch):
    """`torch.manual_seed` would seed those of GPUs too, which nothing here puts back."""
    monkeypatch.setattr(torch, "manual_seed", lambda seed: pytest.fail("seeds every device"))
    MetaTartan.for_data(toy_data(data_dir, cache_dir), lr=1e-3)
    WideResNetSource(depth=10, width=1, mean=[0.5], std=[0.5]).load()
