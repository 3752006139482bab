"""`classifier/` holds the trained classifier in a form that Transformers loads by itself."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    ModernBertForMaskedLM,
    pipeline,
)

from tartan.core.meta_head import MetaHead, MetaHeadSettings
from tartan.encoders.heads import OTHER_HEADS, ClassifierHead, OwnHead
from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.objectives.classification import Classification
from tests.encoders.bodies import KINDS, SMALL, random_body, save

TEXTS = ["red apple old 7", "a river", "wet stone odd 11 and some more words than that"]
LABELS = ["A", "B", "C"]


@pytest.mark.parametrize(
    "kind", [kind for kind, (config, _) in KINDS.items() if config.model_type in OTHER_HEADS]
)
def test_own_heads_start_as_their_class_does_with_the_dropout_asked_for(kind):
    torch.manual_seed(0)
    head = OwnHead(random_body(kind).config, 3, 0.25)
    fresh = AutoModelForSequenceClassification.from_config(head.model.config)
    rates = {module.p for module in head.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == (set() if kind == "eurobert" else {0.25})
    meta = MetaHead(head, MetaHeadSettings(steps=0)).head
    for name, value in head.model.named_parameters():
        expected = float(fresh.get_parameter(name).std())
        assert float(value.std()) == pytest.approx(expected, rel=0.2), name
        assert value.equal(meta.model.get_parameter(name)) == (value.dim() == 1), name


def test_modernberts_classifier_begins_with_layers_of_its_masked_lm(tmp_path):
    model = ModernBertForMaskedLM(AutoConfig.for_model("modernbert", **SMALL, pad_token_id=0))
    encoder = PretrainedEncoder(name=str(save(model, tmp_path))).load()
    own = Classification(3).new_head(encoder).model
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert own.head.dense.weight.equal(theirs.head.dense.weight)
    assert own.head.norm.weight.equal(theirs.head.norm.weight)


@torch.no_grad()
def test_a_head_on_the_mean_of_states_is_saved_apart(tmp_path):
    body, head = random_body("bert").eval(), ClassifierHead(32, 3, 0.1, "mean").eval()
    encoder = TextEncoder("mean", body, letter_pair_tokenizer())
    assert encoder.save_classifier(head, LABELS, tmp_path, 32) is not None
    saved = load_classifier(tmp_path)
    encoded = saved.tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    states = body(**encoded).last_hidden_state
    lengths = encoded["attention_mask"].sum(1)
    means = [row[:length].mean(0) for row, length in zip(states, lengths, strict=True)]
    torch.testing.assert_close(saved.logits(encoded), head(torch.stack(means)))


@torch.no_grad()
def test_a_pipeline_reads_pairs_as_training_did(tmp_path):
    body, head = random_body("bert").eval(), ClassifierHead(32, 3, 0.1).eval()
    tokenizer = letter_pair_tokenizer()
    TextEncoder("bert", body, tokenizer).save_classifier(head, LABELS, tmp_path, 32)
    classify = pipeline("text-classification", str(tmp_path), device="cpu", top_k=None)
    assert classify.tokenizer.model_max_length == 32
    encoded = tokenizer("apple", "river", return_tensors="pt")
    assert encoded["token_type_ids"].max() == 1
    expected = head(body(**encoded).last_hidden_state[:, 0])
    (found,) = classify([{"text": "apple", "text_pair": "river"}], function_to_apply="none")
    scores = [one["score"] for one in sorted(found, key=lambda one: str(one["label"]))]
    torch.testing.assert_close(torch.tensor([scores]), expected, rtol=0, atol=1e-5)
