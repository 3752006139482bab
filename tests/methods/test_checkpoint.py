"""A checkpoint makes its module again, and holds nothing but tensors and plain values."""

from __future__ import annotations

import pickle
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest
import torch

from tartan import TartanData
from tartan.data.labelled import Columns, read_trained_columns
from tartan.data.tartan_data import encoder_of
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.runs.predictor import Predictor
from tests.conftest import DEVICE
from tests.in_process import same
from tests.local_server import serving
from tests.methods.lightning import state_of, toy_data, trainer

TEXTS = ["red apple", "an old and cold river", "stone"]


@pytest.fixture(scope="module")
def trained(data_dir, cache_dir, tmp_path_factory):
    """A module after three steps, its data, and its checkpoint."""
    folder = tmp_path_factory.mktemp("trained")
    data = toy_data(data_dir, cache_dir)
    module = MetaTartan.for_data(data, lr=2e-3, eta=0.3)
    running = trainer(folder, max_steps=3)
    running.fit(module, datamodule=data)
    path = Path(running.checkpoint_callback.best_model_path)
    return module.eval(), data, path


def test_a_checkpoint_alone_gives_the_same_module(trained, tmp_path, monkeypatch):
    module, _, path = trained
    monkeypatch.chdir(tmp_path)
    random = torch.random.get_rng_state()
    again = MetaTartan.load_from_checkpoint(path).eval()
    assert torch.equal(random, torch.random.get_rng_state())
    assert same(state_of(module), state_of(again))
    assert torch.equal(module(TEXTS), again(TEXTS))
    assert again.labels == module.labels == ("A", "R", "S")
    assert again.task_weights == module.task_weights
    assert (again.weighting.eta, again.optimisation) == (0.3, module.optimisation)


def test_predictions_are_the_logits_of_forward(trained, tmp_path):
    module, data, _ = trained
    with torch.no_grad():
        logits = module(data.prepared.end_task.test.texts)
    running = trainer(tmp_path)
    found = running.predict(module, datamodule=data)
    assert torch.allclose(
        torch.cat([part["probabilities"] for part in found]), logits.softmax(1), atol=1e-6
    )
    labels = [label for part in found for label in part["label"]]
    assert labels == [module.labels[i] for i in logits.argmax(1).tolist()]
    (own,) = running.predict(module, torch.utils.data.DataLoader(TEXTS, batch_size=3))
    assert torch.allclose(own["probabilities"], module(TEXTS).softmax(1), atol=1e-6)
    frame = pd.DataFrame({"id": range(len(TEXTS)), "text": TEXTS})  # its items are column names
    for rows in (frame, frame.to_dict("records"), datasets.Dataset.from_pandas(frame)):
        assert torch.equal(module(rows), module(TEXTS))
    frame.to_csv(tmp_path / "t.csv")
    for file in (str(tmp_path / "t.csv"), [str(tmp_path / "t.csv")]):
        with pytest.raises(UserError, match="is a file"):
            module(file)


def test_a_loader_of_ones_own_needs_texts_and_labels_only(trained, tmp_path):
    module, data, _ = trained
    test = data.prepared.end_task.test
    rows = [
        {"text": text, "label": module.labels[label]}
        for text, label in zip(test.texts, test.labels, strict=True)
    ]
    loader = torch.utils.data.DataLoader(rows, batch_size=7)
    running = trainer(tmp_path)
    (own,) = running.test(module, loader, verbose=False)
    (ours,) = running.test(module, datamodule=data, verbose=False)
    assert own == pytest.approx({k: v for k, v in ours.items() if "unseen" not in k}, abs=1e-6)
    unknown = torch.utils.data.DataLoader([{"text": "a", "label": "Q"}])
    with pytest.raises(UserError, match=r"label 'Q' is not one of those trained on.*'A'"):
        running.test(module, unknown, verbose=False)


def test_a_classifier_knows_its_columns_and_how_its_tokenizer_cuts(cache_dir, tmp_path):
    rows = [{"a": f"first {i}", "q": f"second {i}", "text": "other", "y": "no" if i % 2 else "yes"}
            for i in range(20)]  # fmt: skip
    encoder = encoder_of("tiny")
    encoder.tokenizer.truncation_side = "left"
    columns = {"text": "a", "text_pair": "q", "label": "y"}
    data = TartanData(rows, **columns, encoder=encoder, max_length=16, cache_dir=cache_dir)
    module = FineTuning.for_data(data, lr=1e-3)
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=data)
    encoder.tokenizer("x")  # whose call sets other options
    running.save_checkpoint(tmp_path / "here.ckpt")
    module = FineTuning.load_from_checkpoint(tmp_path / "here.ckpt")
    module.eval().save_pretrained(tmp_path / "classifier")
    assert read_trained_columns(tmp_path / "classifier") == Columns("a", "y", "q")
    predictor = Predictor(load_classifier(tmp_path / "classifier"), DEVICE, 16)
    text = "first " * 20 + "end"
    expected = module([(text, "second")]).softmax(1).detach().numpy()
    np.testing.assert_allclose(predictor.predict([text], ["second"]), expected, atol=1e-5)


class Malicious:
    def __init__(self, canary):
        self.canary = str(canary)

    def __reduce__(self):
        return (Path.touch, (Path(self.canary),))


@pytest.mark.parametrize("where", ["file", "address"])
def test_nothing_in_a_checkpoint_is_run_when_a_module_is_made_of_it(
    trained, tmp_path, monkeypatch, where
):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "hub"))
    content = torch.load(trained[2], weights_only=True)
    content["hyper_parameters"]["_instantiator"] = "lightning.pytorch.cli.instantiate_module"
    torch.save(content, tmp_path / "a.ckpt")  # a function that would make the module
    assert same(
        state_of(trained[0]), state_of(MetaTartan.load_from_checkpoint(tmp_path / "a.ckpt"))
    )
    torch.save(content | {"more": Malicious(tmp_path / "canary")}, tmp_path / "a.ckpt")
    with serving(tmp_path) as address:
        given = tmp_path / "a.ckpt" if where == "file" else f"{address}/a.ckpt"
        with pytest.raises(pickle.UnpicklingError):
            MetaTartan.load_from_checkpoint(given, weights_only=False)
    assert not (tmp_path / "canary").exists()


def test_a_checkpoint_with_weights_that_are_no_numbers_makes_no_module(trained, tmp_path):
    content = torch.load(trained[2], weights_only=True)
    name = next(iter(name for name in content["state_dict"] if name.startswith("heads.")))
    content["state_dict"][name].view(-1)[0] = torch.nan
    torch.save(content, tmp_path / "a.ckpt")
    with pytest.raises(UserError, match=r"a\.ckpt: the weights heads\..* are not all finite"):
        MetaTartan.load_from_checkpoint(tmp_path / "a.ckpt")


def test_a_new_task_starts_from_the_head_of_a_pre_training_that_was_loaded(
    data_dir, cache_dir, tmp_path
):
    data = toy_data(data_dir, cache_dir)
    running = trainer(tmp_path, max_steps=2)
    pretraining = ContinuedPretraining.for_data(data, lr=1e-2, tasks=["dapt"])
    running.fit(pretraining, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    earlier = ContinuedPretraining.load_from_checkpoint(tmp_path / "here.ckpt")
    module = MTTartan.for_data(toy_data(data_dir, cache_dir, encoder=earlier.encoder), lr=1e-3)
    trained, found = (m.state_dict() for m in (pretraining.heads["dapt"], module.heads["tapt"]))
    assert all(value.equal(found[name]) for name, value in trained.items())
