"""The same probabilities from the module, from Transformers alone, and from a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    XLNetConfig,
    pipeline,
)

from tartan.encoders.export import HEAD
from tartan.encoders.heads import ClassifierHead
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.objectives.classification import Classification
from tartan.runs.predictor import Predictor
from tests.encoders.bodies import KINDS, random_body
from tests.predict.conftest import LABELS, TEXTS

CPU = torch.device("cpu")
SAVED_APART = {"bigbird", "longformer"}


def by_predict(predict, folder, tmp_path, batch_size):
    """Probabilities that `src.predict` writes for `TEXTS`, `(texts, labels)`."""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    options = {"batch_size": batch_size, "max_length": 32, "overwrite": True}
    predict(tmp_path / "in.jsonl", tmp_path / "out.jsonl", model=str(folder), **options)
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().split("\n")[:-1]]
    return np.array([[record[f"probability_{label}"] for label in LABELS] for record in records])


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [*((kind, "first") for kind in KINDS), ("modernbert", "mean"), ("eurobert", "mean")],
)
@torch.no_grad()
def test_four_ways_agree(kind, pooling, predict, tmp_path):
    encoder = TextEncoder(kind, random_body(kind), letter_pair_tokenizer())
    task, folder = Classification(len(LABELS), pooling=pooling), tmp_path / "classifier"
    head = task.new_head(encoder)
    for parameter in head.parameters():  # biases and norms too
        parameter.add_(0.3 * torch.randn_like(parameter))
    whole = encoder.save_classifier(head, LABELS, folder, 32) is None
    assert whole == (kind not in SAVED_APART) != (folder / HEAD).exists()
    assert encoder.body.training
    assert head.training
    assert len({oct(path.stat().st_mode) for path in folder.iterdir()}) == 1  # as readable
    encoded = encoder.tokenizer(
        TEXTS, padding=True, truncation=True, max_length=32, return_tensors="pt"
    )
    inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
    logits = head.eval()(task.features(encoder.body.eval(), inputs))
    assert logits.std(dim=0).min() > 0.01
    written = by_predict(predict, folder, tmp_path, 3)
    np.testing.assert_allclose(written, logits.softmax(1).numpy(), atol=1e-5)
    if not whole:  # which Transformers does not join
        return

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert type(model) is MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(encoder.body.config)]
    batch = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    types = {"token_type_ids"} if encoder.uses_token_types else set()
    assert set(batch) == {"input_ids", "attention_mask", *types}
    torch.testing.assert_close(model(**batch).logits, logits, rtol=0, atol=1e-5)

    classify = pipeline("text-classification", str(folder), device="cpu")
    for apply, expected in (("none", logits), ("softmax", logits.softmax(1))):
        rows = classify(TEXTS, truncation=True, top_k=None, function_to_apply=apply, batch_size=4)
        scores = [{one["label"]: one["score"] for one in row} for row in rows]
        numbers = np.array([[row[label] for label in LABELS] for row in scores])
        np.testing.assert_allclose(numbers, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "side", "pad"),
    [
        ("gpt2", "right", None),
        ("llama", "right", None),
        ("opt", "right", 9),
        ("gpt2", "left", None),
    ],
)
def test_labels_do_not_depend_on_the_batch_size(kind, side, pad, predict, tmp_path):
    """Decoders read the last token before the padding, of which folders may say what is wrong."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokenizer = letter_pair_tokenizer()
    config = AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), num_labels=len(LABELS), intermediate_size=16,
        max_position_embeddings=64, id2label=dict(enumerate(LABELS)), pad_token_id=pad, **sizes,
    )  # fmt: skip
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    options = json.loads((tmp_path / kind / "tokenizer_config.json").read_text())
    options["padding_side"] = side
    (tmp_path / kind / "tokenizer_config.json").write_text(json.dumps(options))
    alone, together = (by_predict(predict, tmp_path / kind, tmp_path, n) for n in (1, 8))
    np.testing.assert_allclose(alone, together, atol=1e-6)
    assert alone.std(axis=0).max() > 1e-4


def test_a_second_text_counts(predict, tmp_path):
    pairs = [{"a": "red apple", "b": b} for b in ("a river", "wet stones", "")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    predict(tmp_path / "in.jsonl", tmp_path / "out.jsonl", text="a", text_pair="b")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len({json.loads(line)["probability_no"] for line in lines}) == 3


def test_texts_are_cut_at_the_longest_input(classifier):
    predictor = Predictor(load_classifier(classifier), CPU, 8, 8)
    long, short = predictor.predict(["a b c d e f g h i j k l m n", "a b c d e f"])
    np.testing.assert_allclose(long, short, atol=1e-6)


@torch.no_grad()
def test_the_head_of_a_run_reads_the_first_token_of_xlnet_too(predict, tmp_path):
    """XLNet's own classifiers read the last one, behind padding on the left."""
    tokenizer = letter_pair_tokenizer()
    sizes = {"d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 64}
    config = XLNetConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **sizes)
    torch.manual_seed(0)
    encoder = TextEncoder("xlnet", AutoModel.from_config(config), tokenizer)
    encoder.save_classifier(ClassifierHead(32, len(LABELS), 0.1), LABELS, tmp_path / "xlnet", 32)
    alone, together = (by_predict(predict, tmp_path / "xlnet", tmp_path, n) for n in (1, 8))
    np.testing.assert_allclose(alone, together, atol=1e-6)
