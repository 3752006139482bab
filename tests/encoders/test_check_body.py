"""An encoder that would be trained on something else than the whole text is refused."""

from __future__ import annotations

import pytest
import torch
import transformers as t
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from tartan.encoders.text_encoder import TextEncoder, check_body
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tests.encoders.bodies import SMALL

TOKENS = len(letter_pair_tokenizer())
LAYER = {"n_layer": 1, "n_head": 2}


def bert(**entries):
    return t.BertModel(t.BertConfig(**{**SMALL, **entries}))


def gpt2():
    return t.GPT2Model(t.GPT2Config(vocab_size=TOKENS, n_embd=16, **LAYER))


def bart():
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    return t.BartModel(t.BartConfig(vocab_size=2000, decoder_ffn_dim=16, **sizes))


def fnet():
    return t.FNetModel(t.FNetConfig(hidden_size=16, num_hidden_layers=1, vocab_size=TOKENS))


def xlnet():
    return t.XLNetModel(t.XLNetConfig(vocab_size=TOKENS, d_model=16, d_inner=16, **LAYER))


class GruConfig(t.PretrainedConfig):
    model_type = "gru"
    hidden_size = 16


class Gru(t.PreTrainedModel):
    """A body of somebody's own that says nothing of its embeddings."""

    config_class = GruConfig

    def __init__(self, config):
        super().__init__(config)
        self.table = nn.Embedding(TOKENS, 16)
        self.layer = nn.GRU(16, 8, batch_first=True, bidirectional=True)

    def forward(self, input_ids, attention_mask=None, **_):
        return BaseModelOutput(last_hidden_state=self.layer(self.table(input_ids))[0])


def encoder(body):
    return TextEncoder("mine", body, letter_pair_tokenizer())


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (gpt2, "left to right"),
        (lambda: bert(is_decoder=True), "left to right"),
        (bart, "decoder"),
        (lambda: bert().half(), r"float16"),
        (lambda: bert(vocab_size=20), "embeds only 20"),
        (fnet, "padding"),
        (lambda: t.RobertaModel(t.RobertaConfig(**SMALL)), "pad_token_id"),
    ],
)
def test_what_would_be_trained_wrongly_in_silence_is_refused(make, line):
    with pytest.raises(UserError, match=line):
        check_body(encoder(make()))


@pytest.mark.parametrize("make", [bert, xlnet, lambda: Gru(GruConfig())])
def test_others_are_taken_and_left_as_they_were(make):
    body = make().train()
    state = torch.random.get_rng_state()
    check_body(encoder(body))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(module.training for module in body.modules())
    use_kernels(body)
