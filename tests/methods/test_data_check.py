"""A module is not trained or scored on data that do not belong to it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from torch import nn
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel

from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.methods import FineTuning, MTTartan
from tartan.methods.module import TaskMixing
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM
from tests.methods.lightning import toy_data, trainer


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
    own = toy_data(data_dir, cache_dir)
    trainer(tmp_path).test(module, datamodule=own, verbose=False)
    assert module.label_places is None


@pytest.mark.parametrize("call", ["test", "validate", "predict"])
def test_a_checkpoint_of_other_labels_is_not_evaluated(
    call, module, rows, data_dir, cache_dir, tmp_path
):
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=toy_data(data_dir, cache_dir))
    running.save_checkpoint(tmp_path / "here.ckpt")
    data = with_labels(data_dir, cache_dir, rows, A="Z")
    other = MTTartan.for_data(data, lr=1e-3)
    line = r"checkpoint's labels are \['A', 'R', 'S'\], the module's \['R', 'S', 'Z'\]: evaluate MT"
    with pytest.raises(UserError, match=line):
        getattr(trainer(tmp_path), call)(
            other, datamodule=data, ckpt_path=tmp_path / "here.ckpt", weights_only=True
        )


def test_heads_of_other_labels_are_not_taken_over(module, rows, data_dir, cache_dir):
    data = with_labels(data_dir, cache_dir, rows, A="Z")
    with pytest.raises(UserError, match=r"with the labels \['A', 'R', 'S'\], and the end task has"):
        FineTuning.for_data(data, lr=1e-3, heads=module.heads)
    MTTartan.for_data(data, lr=1e-3, heads={"tapt": module.heads["tapt"]})


@dataclass(frozen=True)
class OtherHead(Classification):
    """The end task with a head of one's own."""

    def new_head(self, encoder):
        return nn.Linear(encoder.hidden_size, self.classes)


def test_objectives_are_those_that_make_the_batches(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir, class_weights=[3, 1, 1])
    prepared = data.prepared
    own = {"end_task": prepared.classification, "tapt": prepared.objective("tapt")}
    evaluated = {"labels": prepared.end_task.labels, "max_length": prepared.end_task.max_length}
    for objectives, line in (
        (
            own | {"tapt": MaskedLM(probability=0.9)},
            "task tapt: probability of .* 0.9",
        ),
        (
            own | {"end_task": OtherHead(3)},
            "task end_task: class_weights of .* is null",
        ),
    ):
        module = MTTartan(prepared.encoder, objectives, **evaluated)
        with pytest.raises(UserError, match=line):
            trainer(tmp_path, max_steps=1).fit(module, datamodule=data)
    head = OtherHead(**vars(prepared.classification) | {"dropout": 0.0})
    module = MTTartan(prepared.encoder, own | {"end_task": head}, **evaluated)
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    again = MTTartan.load_from_checkpoint(tmp_path / "here.ckpt")
    trainer(tmp_path, max_steps=1).fit(again, datamodule=data)


def test_labels_that_the_module_has_not_are_refused(module, rows, data_dir, cache_dir, tmp_path):
    data = with_labels(data_dir, cache_dir, rows, S="Z")
    with pytest.raises(UserError, match="the data have the label 'Z', which is not one of those"):
        trainer(tmp_path).validate(module, datamodule=data, verbose=False)


def test_another_tokenizers_data_are_refused(module, data_dir, cache_dir, tmp_path):
    tokenizer = letter_pair_tokenizer()
    tokenizer.add_tokens(["apple"])
    size = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=1, **size)
    data = toy_data(data_dir, cache_dir, encoder=(BertModel(config), tokenizer))
    with pytest.raises(UserError, match=r"read for encoder .*encoder=module\.encoder"):
        trainer(tmp_path).test(module, datamodule=data, verbose=False)


def test_data_of_another_length_are_not_trained_on(module, data_dir, cache_dir, tmp_path):
    shorter = toy_data(data_dir, cache_dir, max_length=16)
    with pytest.raises(UserError, match=r"cut to max_length=16 tokens, the module's to 32"):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=shorter)
    trainer(tmp_path).test(module, datamodule=shorter, verbose=False)


def test_data_of_another_seed_are_warned_of(module, data_dir, cache_dir, tmp_path, caplog):
    other = toy_data(data_dir, cache_dir, seed=5, encoder=module.encoder)
    trainer(tmp_path, max_steps=1).fit(module, datamodule=other)
    assert "batches are drawn by the data's seed, 5, dropout by the module's, 0" in caplog.text


def test_a_task_that_the_data_lack_is_refused(module, data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir, auxiliaries={"tapt": "task"})
    with pytest.raises(UserError, match=r"auxiliary task dapt.*they have \['tapt'\].*auxiliaries="):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=data)
    trainer(tmp_path).test(module, datamodule=data, verbose=False)  # needs no auxiliary task
    other = FineTuning.for_data(data, lr=1e-3)
    trainer(tmp_path, max_steps=1, enable_checkpointing=False).fit(other, datamodule=data)


def test_data_of_an_earlier_call_of_the_trainer_do_not_matter(rows, data_dir, cache_dir, tmp_path):
    some = [row for row in rows if row["label"] in "RS"]
    ours, theirs = with_labels(data_dir, cache_dir, some), with_labels(data_dir, cache_dir, rows)
    running = trainer(tmp_path, max_steps=1, enable_checkpointing=False)
    running.fit(FineTuning.for_data(theirs, lr=1e-3), datamodule=theirs)
    module = FineTuning.for_data(ours, lr=1e-3)
    (scores,) = running.validate(module, DataLoader(some, batch_size=4), verbose=False)
    assert 0 <= scores["dev/micro_f1"] <= 1


def test_a_checkpoint_can_be_loaded_by_the_base_of_all_methods(module, data_dir, tmp_path):
    running = trainer(tmp_path)
    running.strategy.connect(module)
    running.save_checkpoint(tmp_path / "here.ckpt", weights_only=True)
    assert TaskMixing.load_from_checkpoint(tmp_path / "here.ckpt").labels == module.labels
