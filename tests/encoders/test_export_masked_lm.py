"""An encoder with its masked-LM head is saved as Transformers' model, or refused at the start."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertModel

from tartan.encoders.export import check_masked_lm, save_masked_lm
from tartan.encoders.heads import split_masked_lm
from tartan.encoders.pretrained import load_folder
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError
from tests.encoders.test_masked_lm_head import KINDS, model_of, our_logits, own_logits


@pytest.mark.parametrize("kind", KINDS)
def test_the_saved_model_has_the_logits_of_body_and_head(kind, tmp_path):
    body, head = split_masked_lm(model_of(kind), set())
    body.eval()
    save_masked_lm(body, head, letter_pair_tokenizer(), tmp_path)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(own_logits(model), our_logits(body, head), atol=1e-5, rtol=1e-5)
    read = load_folder(tmp_path, "read")
    assert read.mlm_head is not None
    torch.testing.assert_close(
        our_logits(read.body, read.mlm_head), our_logits(body, head), atol=1e-5, rtol=1e-5
    )


def test_an_encoder_without_a_head_is_saved_with_a_new_one(tmp_path):
    encoder = TinyEncoder().load()
    head = encoder.new_mlm_head()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    save_masked_lm(encoder.body, head, encoder.tokenizer, tmp_path)
    assert encoder.body.training  # as it was
    model = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    encoder.body.eval()
    torch.testing.assert_close(
        own_logits(model), our_logits(encoder.body, head), atol=1e-5, rtol=1e-5
    )


def test_the_tokenizer_is_saved_without_the_truncation_and_padding_of_its_last_call(tmp_path):
    encoder = TinyEncoder().load()
    encoder.tokenizer(["a text of words"], truncation=True, max_length=4, padding=True)
    save_masked_lm(encoder.body, encoder.new_mlm_head(), encoder.tokenizer, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert len(tokenizer("a text of words")["input_ids"]) > 4


def test_a_head_that_cannot_be_saved_is_refused_before_training():
    config = BertConfig(
        vocab_size=len(letter_pair_tokenizer()), hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=16, hidden_act="relu",
    )  # fmt: skip
    body = BertModel(config, add_pooling_layer=False)
    encoder = TextEncoder("with ReLU", body, letter_pair_tokenizer())
    with pytest.raises(UserError, match="cannot hold the head of with ReLU"):
        check_masked_lm(encoder)
