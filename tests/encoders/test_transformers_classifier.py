"""`classifier/` is the trained classifier, loaded by Transformers alone."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from src.encoders.tiny import letter_pair_tokenizer
from tests.in_process import RecordedRun, recorded_run, toy

TEXTS = ["red apple old 7", "a river", "wet stone odd 11 and some more words than that"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a small random encoder of a kind; its options for a run."""

    def call(kind: str) -> list[str]:
        if kind == "bert":
            return ["encoder=tiny"]
        tokenizer = letter_pair_tokenizer()
        torch.manual_seed(0)
        if kind == "roberta":
            config = RobertaConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=64,
                max_position_embeddings=66,
                type_vocab_size=1,
                pad_token_id=tokenizer.pad_token_id,
                bos_token_id=tokenizer.cls_token_id,
                eos_token_id=tokenizer.sep_token_id,
            )
            model = RobertaForMaskedLM(config)
        else:
            config = DistilBertConfig(
                vocab_size=len(tokenizer), dim=32, n_layers=2, n_heads=2, hidden_dim=64
            )
            model = DistilBertModel(config)
        folder = tmp_path_factory.mktemp(kind)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return ["encoder=huggingface", f"encoder.name={folder}"]

    return call


@pytest.fixture(scope="module")
def runs(saved, data_dir, cache_dir, tmp_path_factory):
    """A finished run by the kind of its encoder."""
    known: dict[str, RecordedRun] = {}

    def call(kind: str) -> RecordedRun:
        if kind not in known:
            folder = tmp_path_factory.mktemp(f"{kind}_run")
            options = [*saved(kind), "max_steps=3", "encoder.lr.finetune=0.01"]
            known[kind] = recorded_run(toy(data_dir, cache_dir, "finetune", *options), folder)
        return known[kind]

    return call


def our_logits(run: RecordedRun, encoded) -> torch.Tensor:
    module = run.tested_module.eval()
    hidden = module.body(**inputs_of(encoded)).last_hidden_state
    return module.heads["end_task"](hidden[:, 0])


def inputs_of(encoded) -> dict[str, torch.Tensor]:
    return {name: encoded[name] for name in ("input_ids", "attention_mask")}


def encoded_by(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return tokenizer(TEXTS, padding=True, truncation=True, max_length=32, return_tensors="pt")


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@torch.no_grad()
def test_transformers_own_class_gives_the_same_logits(runs, kind):
    folder = runs(kind).folder / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert not model.training
    encoded = encoded_by(folder)
    expected = our_logits(runs(kind), encoded)
    torch.testing.assert_close(model(**inputs_of(encoded)).logits, expected, rtol=0, atol=1e-5)
    assert expected.std() > 1e-3


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_labels_are_in_the_config(runs, kind):
    folder = runs(kind).folder / "classifier"
    config = AutoModelForSequenceClassification.from_pretrained(folder).config
    assert config.id2label == {0: "A", 1: "R", 2: "S"}
    assert config.label2id == {"A": 0, "R": 1, "S": 2}
    assert config.num_labels == 3


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_labels_and_tokenizer_lie_beside_the_model(runs, kind):
    folder = runs(kind).folder / "classifier"
    assert json.loads((folder / "labels.json").read_text()) == ["A", "R", "S"]
    ours = letter_pair_tokenizer()(TEXTS)["input_ids"]
    assert AutoTokenizer.from_pretrained(folder)(TEXTS)["input_ids"] == ours


def test_a_whole_classifier_has_no_separate_head(runs):
    for kind in ("bert", "roberta"):
        assert not (runs(kind).folder / "classifier" / "classifier_head.safetensors").exists()


@torch.no_grad()
def test_where_the_heads_differ_in_shape_body_and_head_lie_apart(runs):
    run = runs("distilbert")
    folder = run.folder / "classifier"
    body, head = (
        AutoModel.from_pretrained(folder),
        load_file(folder / "classifier_head.safetensors"),
    )
    encoded = encoded_by(folder)
    first = body(**inputs_of(encoded)).last_hidden_state[:, 0]
    hidden = torch.tanh(first @ head["dense.weight"].T + head["dense.bias"])
    logits = hidden @ head["out.weight"].T + head["out.bias"]
    torch.testing.assert_close(logits, our_logits(run, encoded), rtol=0, atol=1e-5)


def test_a_classifier_in_parts_is_announced(saved, data_dir, cache_dir, tmp_path, caplog):
    options = [*saved("distilbert"), "max_steps=1"]
    recorded_run(toy(data_dir, cache_dir, "finetune", *options), tmp_path)
    assert "body and head apart" in caplog.text


@torch.no_grad()
def test_the_exported_classifier_scores_what_the_result_says(runs, data_dir):
    run = runs("bert")
    folder = run.folder / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lines = (data_dir / "toy" / "test.jsonl").read_text().splitlines()
    examples = [json.loads(line) for line in lines]
    texts = [example["text"] for example in examples]
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    found = model(**inputs_of(encoded)).logits.argmax(1).tolist()
    labels = [example["label"] for example in examples]
    right = sum(model.config.id2label[i] == label for i, label in zip(found, labels, strict=True))
    reported = run.result["test"]["whole"]["metrics"]["micro_f1"]
    assert reported == pytest.approx(right / len(labels), abs=1e-6)
