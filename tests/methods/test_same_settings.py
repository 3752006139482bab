"""A training goes on from a checkpoint with its settings, or not at all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from lightning.pytorch.trainer.states import TrainerFn

from tartan.core.weighting.loss_based import DWA
from tartan.errors import UserError
from tartan.methods import MetaTartan, MTTartan
from tartan.methods.optimisation import Optimisation
from tartan.methods.same_settings import check_same_settings
from tests.methods.lightning import fitted, toy_data, trainer

SLOW = Optimisation(body_lr=1e-4)
ROWS = [(f"number {number} of the texts", "ARS"[number % 3]) for number in range(48)]
OTHER_TEXT = {"tapt": "task", "dapt": [text for text, _ in ROWS]}


@pytest.fixture(scope="module")
def point(data_dir, cache_dir, tmp_path_factory):
    """A checkpoint after two steps."""
    folder = tmp_path_factory.mktemp("point")
    data = toy_data(data_dir, cache_dir)
    module = MTTartan.for_data(data, optimisation=SLOW)
    running = trainer(folder, max_steps=2, enable_checkpointing=False)
    running.fit(module, datamodule=data)
    running.save_checkpoint(folder / "here.ckpt")
    return folder / "here.ckpt"


@pytest.mark.parametrize(
    ("of_data", "of_module", "said"),
    [
        ({}, {"optimisation": replace(SLOW, body_lr=2e-4)}, "body_lr was 0.0001, is 0.0002"),
        ({}, {"weighting": partial(DWA, window=2)}, "weighting._target_ was"),
        ({}, {"tasks": ["tapt"]}, r'tasks was \["?.end_task'),
        ({"seed": 1}, {}, "seed was 0, is 1"),
        ({"batch_size": 4}, {}, "TartanData.batch_size was 8, is 4"),
        ({"max_length": 16}, {}, "max_length was 32, is 16"),
        ({"train": ROWS}, {}, "auxiliary tapt, task train; give the same files"),
        ({"dev": ROWS, "test": ROWS}, {}, "auxiliary tapt, task dev, task test; give the same"),
        ({"auxiliaries": OTHER_TEXT}, {}, "since the checkpoint was written: auxiliary dapt; give"),
    ],
)
def test_other_settings_are_refused_by_name(
    data_dir, cache_dir, tmp_path, point, of_data, of_module, said
):
    data = toy_data(data_dir, cache_dir, **of_data)
    module = MTTartan.for_data(data, **{"optimisation": SLOW, **of_module})
    with pytest.raises(UserError, match=said) as caught:
        fitted(module, data, tmp_path, max_steps=4, ckpt_path=point)
    assert "without ckpt_path" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_longer_training_goes_on_and_evaluations_do_not_compare(
    data_dir, cache_dir, tmp_path, point
):
    data = toy_data(data_dir, cache_dir, sizes={"micro_batch_size": 4})
    module = MTTartan.for_data(data, optimisation=SLOW)
    seen = fitted(module, data, tmp_path, max_steps=4, ckpt_path=point)
    assert seen.steps == [2, 3]
    anew = MTTartan.for_data(data, optimisation=SLOW)
    assert seen.rates == fitted(anew, data, tmp_path, max_steps=4).rates[2:]
    other = MTTartan.for_data(data, lr=3e-3)
    trainer(tmp_path).validate(other, datamodule=data, ckpt_path=point, verbose=False)


def test_tuples_come_back_as_they_are(tmp_path):
    settings = {"weighting": {"values": (1.0, 2.0)}}
    torch.save(settings, tmp_path / "here.pt")
    check_same_settings(torch.load(tmp_path / "here.pt", weights_only=True), settings)
    check_same_settings({"weighting": {"values": [1.0, 2.0]}}, settings)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((), (), None),
        (("embeddings",), ("embeddings",), None),
        (
            ("embeddings",),
            (),
            "had frozen body.embeddings.word_embeddings.weight and 4 more; before",
        ),
        (
            (),
            ("embeddings.word_embeddings",),
            "had trained body.embeddings.word_embeddings.weight, which is frozen now; before",
        ),
        (
            ("embeddings.word_embeddings",),
            ("embeddings.LayerNorm",),
            "had frozen body.embeddings.word_embeddings.weight, and had trained "
            "body.embeddings.LayerNorm.weight and 1 more, which are frozen now; before",
        ),
    ],
)
def test_other_frozen_parameters_are_refused_by_name(
    before, now, said, data_dir, cache_dir, tmp_path
):
    def made(*parts):
        data = toy_data(data_dir, cache_dir)
        module = MTTartan.for_data(data, optimisation=SLOW)
        for part in parts:
            module.body.get_submodule(part).requires_grad_(False)
        return module, data

    module, data = made(*before)
    running = trainer(tmp_path, max_steps=2, enable_checkpointing=False)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    again, data = made(*now)
    going_on = {"max_steps": 4, "ckpt_path": tmp_path / "here.ckpt", "enable_checkpointing": False}
    if said is None:
        assert fitted(again, data, tmp_path, **going_on).steps == [2, 3]
        return
    with pytest.raises(UserError) as caught:
        fitted(again, data, tmp_path, **going_on)
    assert str(caught.value).startswith(f"the checkpoint's training {said} fit(")


def test_a_checkpoint_names_the_frozen_parameters_alone(point):
    assert torch.load(point, weights_only=True)["progress"]["frozen"] == []


def test_the_meta_head_is_neither_frozen_nor_trained(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = MetaTartan.for_data(data, lr=1e-3)
    module.freeze()
    for part in (module.body, module.heads):
        part.requires_grad_(True)
    running = trainer(tmp_path, max_steps=2, enable_checkpointing=False)
    running.fit(module.train(), datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    going_on = {"max_steps": 4, "ckpt_path": tmp_path / "here.ckpt", "enable_checkpointing": False}
    assert fitted(module, data, tmp_path, **going_on).steps == [2, 3]


def test_a_sharded_module_is_compared_as_it_is_restored(data_dir, cache_dir, tmp_path, point):
    data = toy_data(data_dir, cache_dir)
    module = MTTartan.for_data(data, optimisation=SLOW)
    module.trainer = trainer(tmp_path)
    module.trainer.state.fn = TrainerFn.FITTING
    module.frozen_names = ["body.a", "body.b"]  # Lightning has made its optimiser before
    with pytest.raises(UserError, match=r"had trained body\.a and 1 more, which are frozen now"):
        module.on_load_checkpoint(torch.load(point, weights_only=True))


def test_a_checkpoint_of_an_earlier_version_names_none(data_dir, cache_dir, tmp_path, point):
    content = torch.load(point, weights_only=True)
    del content["progress"]["frozen"]
    torch.save(content, tmp_path / "earlier.ckpt")
    data = toy_data(data_dir, cache_dir)
    module = MTTartan.for_data(data, optimisation=SLOW)
    seen = fitted(module, data, tmp_path, max_steps=4, ckpt_path=tmp_path / "earlier.ckpt")
    assert seen.steps == [2, 3]
