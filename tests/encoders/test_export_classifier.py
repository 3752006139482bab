"""`classifier/` holds the trained classifier in a form that Transformers loads by itself."""

from __future__ import annotations

import pytest
import torch

from tartan.encoders.heads import ClassifierHead
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tests.encoders.bodies import KINDS, random_body

TEXTS = ["red apple old 7", "a river", "wet stone odd 11 and some more words than that"]
LABELS = ["A", "B", "C"]
SAVED_APART = {"electra, narrow", "modernbert", "longformer", "bigbird", "roformer"}


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_body_and_head_are_saved_as_one_model_where_an_architecture_has_both(kind, tmp_path):
    body, tokenizer = random_body(kind), letter_pair_tokenizer()
    head = ClassifierHead(32, 3, 0.1)
    encoder = TextEncoder(kind, body, tokenizer)
    whole = encoder.save_classifier(head, LABELS, tmp_path, 32) is None
    assert whole == (kind not in SAVED_APART)
    assert body.training
    assert (tmp_path / "classifier_head.safetensors").exists() != whole
    assert len({oct(path.stat().st_mode) for path in tmp_path.iterdir()}) == 1  # as readable
    saved = load_classifier(tmp_path)
    assert (saved.labels, saved.max_length) == (tuple(LABELS), 32)
    encoded = saved.tokenizer([*TEXTS, ""], padding=True, truncation=True, return_tensors="pt")
    types = {"token_type_ids"} if encoder.uses_token_types else set()
    assert set(encoded) == {"input_ids", "attention_mask", *types}
    expected = head.eval()(body.eval()(**encoded).last_hidden_state[:, 0])
    torch.testing.assert_close(saved.logits(encoded), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.01


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
