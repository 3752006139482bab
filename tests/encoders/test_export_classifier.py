"""`classifier/` holds the trained classifier in a form that Transformers loads by itself."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    pipeline,
)

from tartan.encoders.export import save_classifier, uses_token_types
from tartan.encoders.heads import ClassifierHead
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tests.encoders.bodies import KINDS, random_body
from tests.in_process import RecordedRun, recorded_run, toy

TEXTS = ["red apple old 7", "a river", "wet stone odd 11 and some more words than that"]

SAVED_APART = {"modernbert", "longformer", "bigbird", "roformer"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a function that saves a small random encoder and returns its options for a run."""

    def call(kind: str) -> list[str]:
        if kind == "bert":
            return ["encoder=tiny"]
        folder = tmp_path_factory.mktemp(kind)
        random_body(kind).save_pretrained(folder)
        letter_pair_tokenizer().save_pretrained(folder)
        return ["encoder=huggingface", f"encoder.name={folder}"]

    return call


@pytest.fixture(scope="module")
def runs(saved, data_dir, cache_dir, tmp_path_factory):
    """Return a function from the kind of an encoder to a finished run with it."""
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


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
@torch.no_grad()
def test_transformers_own_class_gives_the_same_logits(runs, kind):
    folder = runs(kind).folder / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert not model.training
    encoded = encoded_by(folder)
    expected = our_logits(runs(kind), encoded)
    torch.testing.assert_close(model(**inputs_of(encoded)).logits, expected, rtol=0, atol=1e-5)
    assert expected.std() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_a_pipeline_truncates_as_training_did(runs, kind):
    folder = runs(kind).folder / "classifier"
    texts = [*TEXTS, "many words of a text that is longer than that " * 20]
    classify = pipeline("text-classification", str(folder), device="cpu", top_k=None)
    assert classify.tokenizer.model_max_length == 32
    encoded = letter_pair_tokenizer()(
        texts, padding=True, truncation=True, max_length=32, return_tensors="pt"
    )
    expected = our_logits(runs(kind), encoded)
    for size in (1, 3):
        found = classify(texts, truncation=True, function_to_apply="none", batch_size=size)
        scores = [{one["label"]: one["score"] for one in row} for row in found]
        logits = torch.tensor([[row[label] for label in ("A", "R", "S")] for row in scores])
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_body_and_head_are_saved_as_one_model_where_an_architecture_has_both(kind, tmp_path):
    body, tokenizer = random_body(kind), letter_pair_tokenizer()
    head = ClassifierHead(32, 3, 0.1)
    whole = save_classifier(body, tokenizer, head, ["A", "B", "C"], tmp_path, 32)
    assert whole == (kind not in SAVED_APART)
    assert body.training
    assert (tmp_path / "classifier_head.safetensors").exists() != whole
    saved = load_classifier(tmp_path)
    assert (saved.labels, saved.max_length) == (("A", "B", "C"), 32)
    encoded = saved.tokenizer([*TEXTS, ""], padding=True, truncation=True, return_tensors="pt")
    types = {"token_type_ids"} if uses_token_types(body, tokenizer) else set()
    assert set(encoded) == {"input_ids", "attention_mask", *types}
    hidden = body.eval()(**encoded).last_hidden_state
    expected = head.eval()(hidden[:, 0])
    torch.testing.assert_close(saved.logits(encoded), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.01


@torch.no_grad()
def test_a_pair_is_read_as_the_body_was_trained(tmp_path):
    body, head = random_body("bert").eval(), ClassifierHead(32, 3, 0.1).eval()
    save_classifier(body, letter_pair_tokenizer(), head, ["A", "B", "C"], tmp_path, 32)
    classify = pipeline("text-classification", str(tmp_path), device="cpu", top_k=None)
    (found,) = classify([{"text": "apple", "text_pair": "river"}], function_to_apply="none")
    encoded = letter_pair_tokenizer()("apple", "river", return_tensors="pt")
    assert encoded["token_type_ids"].max() == 1
    expected = head(body(**encoded).last_hidden_state[:, 0])[0]
    logits = [score for _, score in sorted((one["label"], one["score"]) for one in found)]
    torch.testing.assert_close(torch.tensor(logits), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_exported_classifier_reaches_the_score_of_the_result(runs, data_dir):
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


def test_the_weights_are_as_readable_as_the_other_files(tmp_path):
    encoder = TinyEncoder().load()
    head = ClassifierHead(encoder.hidden_size, 2, 0.0)
    save_classifier(encoder.body, encoder.tokenizer, head, ["a", "b"], tmp_path)
    modes = {oct(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1
