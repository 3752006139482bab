"""What would train, evaluate or go on wrongly in silence is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from transformers import BertConfig, BertModel

from tartan.core.meta_head import MetaHeadSettings
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.meta import Meta
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.methods.optimisation import Optimisation
from tests.in_process import same
from tests.methods.lightning import fitted, state_of, toy_data, trainer

SLOW = Optimisation(body_lr=1e-4)
ROWS = [(f"number {number} of the texts", "ARS"[number % 3]) for number in range(48)]


@pytest.fixture
def data(data_dir, cache_dir):
    return toy_data(data_dir, cache_dir)


@pytest.fixture(scope="module")
def module(data_dir, cache_dir):
    return MTTartan.for_data(toy_data(data_dir, cache_dir), lr=1e-3)


@pytest.fixture
def rows(data_dir):
    lines = (data_dir / "toy" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def with_labels(data_dir, cache_dir, rows, **labels):
    """Data whose splits all have these rows, with other labels."""
    given = [{**row, "label": labels.get(row["label"], row["label"])} for row in rows]
    return toy_data(data_dir, cache_dir, train=given, dev=given, test=given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"precision": "bf16-true", "max_steps": 2}, "use bf16-mixed"),
        ({"strategy": "ddp", "devices": 2, "max_steps": 2}, "ReplicaStrategy"),
        ({}, "max_steps or max_epochs"),
        ({"callbacks": [EarlyStopping("dev/macro_f1")], "max_steps": 2}, "mode='max'"),
        ({"callbacks": [ModelCheckpoint(monitor="dev/loss", mode="max")], "max_steps": 2}, "min"),
        ({"callbacks": [StochasticWeightAveraging(0.1)], "max_epochs": 2}, "EMAWeightAveraging"),
        (
            {
                "callbacks": [ModelCheckpoint(train_time_interval=timedelta(minutes=1))],
                "max_steps": 1,
            },
            "train_time_interval",
        ),
    ],
)
def test_options_of_the_trainer(data, tmp_path, options, said, monkeypatch):
    # Lightning starts the other processes first, which here would run the tests once more
    monkeypatch.setattr(_SubprocessScriptLauncher, "_call_children_scripts", lambda self: None)
    module = FineTuning.for_data(data, lr=2e-3)
    before = state_of(module)
    with pytest.raises(UserError, match=said):
        trainer(tmp_path, **options).fit(module, datamodule=data)
    assert same(before, state_of(module))


def test_a_table_as_the_loader_of_a_prediction(module, tmp_path):
    with pytest.raises(UserError, match="DataLoader"):
        trainer(tmp_path).predict(module, pd.DataFrame({"id": [1], "text": ["one apple"]}))


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        (FineTuning, {}, "give a learning rate"),
        (ContinuedPretraining, {"lr": 1e-3, "head_lr": 1e-3}, "head_lr has no effect"),
        (
            MetaTartan,
            {"lr": 1e-3, "meta_head": MetaHeadSettings(), "weighting": Uniform},
            "weighting Uniform needs no meta-gradient: omit meta_head",
        ),
        (FineTuning, {"lr": 1e-3, "tasks": ["tapt"]}, "tasks has no effect"),
        (MTTartan, {"lr": 1e-3, "weighting": Meta}, "weighting Meta needs .*; use MetaTartan"),
        (MetaTartan, {"lr": 1e-3, "eta": 0.1, "weighting": Meta}, "eta has no effect"),
        (MTTartan, {"lr": 1e-3, "sampled": 1}, "Uniform needs steps with all"),
        (MTTartan, {"lr": 1e-3, "tasks": []}, "MTTartan does not train end_task"),
    ],
)
def test_arguments_that_fit_no_training(data, method, options, said):
    with pytest.raises(UserError, match=said):
        method.for_data(data, **options)


def test_a_part_of_the_labels_is_scored_by_their_names(module, rows, data_dir, cache_dir, tmp_path):
    some = [row for row in rows if row["label"] in "RS"]
    data = with_labels(data_dir, cache_dir, some)
    (scores,) = trainer(tmp_path).test(module, datamodule=data, verbose=False)
    module.eval()
    chosen = module([row["text"] for row in some]).argmax(1).tolist()
    hits = [module.labels[i] == row["label"] for i, row in zip(chosen, some, strict=True)]
    assert scores["test/micro_f1"] == pytest.approx(sum(hits) / len(hits))
    with pytest.raises(UserError, match=r"data's labels are \['R', 'S'\], the module's \['A'"):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=data)
    other = with_labels(data_dir, cache_dir, rows, S="Z")
    with pytest.raises(UserError, match=r"data's labels are .*'Z'"):
        trainer(tmp_path).validate(module, datamodule=other, verbose=False)


def test_a_checkpoint_of_other_labels(rows, data_dir, cache_dir, tmp_path):
    running, data = trainer(tmp_path, max_steps=1), toy_data(data_dir, cache_dir)
    running.fit(MTTartan.for_data(data, lr=1e-3), datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    data = with_labels(data_dir, cache_dir, rows, A="Z")
    module = MTTartan.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match="checkpoint has other labels than"):
        trainer(tmp_path).predict(module, datamodule=data, ckpt_path=tmp_path / "here.ckpt")


def test_another_tokenizers_data(module, data_dir, cache_dir, tmp_path):
    tokenizer = letter_pair_tokenizer()
    tokenizer.add_tokens(["apple"])
    size = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=1, **size)
    data = toy_data(data_dir, cache_dir, encoder=(BertModel(config), tokenizer))
    with pytest.raises(UserError, match=r"read for encoder .*encoder=module\.encoder"):
        trainer(tmp_path).test(module, datamodule=data, verbose=False)


def test_data_of_another_length(module, data_dir, cache_dir, tmp_path):
    shorter = toy_data(data_dir, cache_dir, max_length=16)
    with pytest.raises(UserError, match="max_length of the data is 16, of the module 32"):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=shorter)
    trainer(tmp_path).test(module, datamodule=shorter, verbose=False)


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
        ({}, {"optimisation": replace(SLOW, body_lr=2e-4)}, "optimisation was .*0.0001"),
        ({}, {"tasks": ["tapt"]}, "tasks was"),
        ({"seed": 1}, {}, "seed was 0, is 1"),
        ({"max_length": 16}, {}, "max_length was 32, is 16"),
        ({"train": ROWS}, {}, "task train was"),
        ({"auxiliaries": {"tapt": "task", "dapt": [t for t, _ in ROWS]}}, {}, "auxiliary dapt was"),
    ],
)
def test_a_training_goes_on_with_its_settings_and_data(
    data_dir, cache_dir, tmp_path, point, of_data, of_module, said
):
    data = toy_data(data_dir, cache_dir, **of_data)
    module = MTTartan.for_data(data, **{"optimisation": SLOW, **of_module})
    with pytest.raises(UserError, match=said) as caught:
        fitted(module, data, tmp_path, max_steps=4, ckpt_path=point)
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
