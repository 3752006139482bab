"""An encoder that would be trained on something else than the whole text is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    EsmTokenizer,
    FNetConfig,
    FNetModel,
    GPT2Config,
    GPT2Model,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    XLNetConfig,
    XLNetModel,
)
from transformers.modeling_outputs import BaseModelOutput

from tartan.encoders.pretrained import PretrainedEncoder, load_encoder
from tartan.encoders.text_encoder import TextEncoder, check_body
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels

TOKENS = len(letter_pair_tokenizer())
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def gpt2():
    return GPT2Model(GPT2Config(vocab_size=TOKENS, n_embd=16, n_layer=1, n_head=2))


def bert(**entries):
    sizes = {"vocab_size": TOKENS, "intermediate_size": 16, **SIZES}
    return BertModel(BertConfig(**{**sizes, **entries}))


def bart():
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    return BartModel(BartConfig(vocab_size=2000, decoder_ffn_dim=16, **sizes))


def fnet():
    return FNetModel(FNetConfig(hidden_size=16, num_hidden_layers=1, vocab_size=TOKENS))


def roberta():
    return RobertaModel(RobertaConfig(vocab_size=TOKENS, intermediate_size=16, **SIZES))


def xlnet():
    return XLNetModel(XLNetConfig(vocab_size=TOKENS, d_model=16, n_layer=1, n_head=2, d_inner=16))


class GruConfig(PretrainedConfig):
    model_type = "gru"
    hidden_size = 16


class Gru(PreTrainedModel):
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
        (gpt2, r"\(gpt2\) reads left to right"),
        (lambda: bert(is_decoder=True), r"\(bert\) reads left to right"),
        (bart, r"\(bart\) has a decoder too"),
        (lambda: bert().half(), r"has parameters of type torch\.float16"),
        (lambda: bert(vocab_size=20), "its model embeds only 20"),
        (fnet, r"\(fnet\) reads padding"),
        (roberta, "counts positions from another pad_token_id"),
    ],
)
def test_what_would_be_trained_wrongly_in_silence_is_refused(make, line):
    with pytest.raises(UserError, match=line) as caught:
        check_body(encoder(make()))
    assert "\n" not in str(caught.value)


def test_a_slow_tokenizer_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("<cls>\n<pad>\n<eos>\n<unk>\nA\nB\n<mask>\n")
    with pytest.raises(UserError, match="none of the fast ones"):
        check_body(TextEncoder("mine", bert(), EsmTokenizer(str(tmp_path / "vocab.txt"))))


def test_a_folder_is_checked_too(tmp_path):
    gpt2().save_pretrained(tmp_path)
    letter_pair_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UserError, match="reads left to right"):
        load_encoder(PretrainedEncoder(str(tmp_path)))


@pytest.mark.parametrize("make", [bert, xlnet, lambda: Gru(GruConfig())])
def test_others_are_taken_and_left_as_they_were(make):
    body = make().train()
    state = torch.random.get_rng_state()
    check_body(encoder(body))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(module.training for module in body.modules())


def test_embeddings_that_cannot_be_replaced_stay():
    body = Gru(GruConfig())
    use_kernels(body)
    assert type(body.table) is nn.Embedding
