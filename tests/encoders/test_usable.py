"""An encoder that cannot be trained here is refused when it is loaded, in one line."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers import (
    BartConfig,
    BartModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    PretrainedConfig,
    PreTrainedModel,
    XLNetConfig,
    XLNetModel,
)
from transformers.modeling_outputs import BaseModelOutput

from tartan.data.given import encoder_of
from tartan.encoders.text_encoder import PretrainedEncoder, TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.encoders.usable import check_body, load_encoder
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels

TOKENS = len(letter_pair_tokenizer())


def gpt2() -> GPT2Model:
    return GPT2Model(GPT2Config(vocab_size=TOKENS, n_embd=16, n_layer=1, n_head=2))


def bert(**entries: object) -> BertModel:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return BertModel(BertConfig(vocab_size=TOKENS, intermediate_size=16, **sizes, **entries))


def xlnet() -> XLNetModel:
    return XLNetModel(XLNetConfig(vocab_size=TOKENS, d_model=16, n_layer=1, n_head=2, d_inner=16))


class GruConfig(PretrainedConfig):
    model_type = "gru"
    hidden_size = 16


class Gru(PreTrainedModel):
    """A body of somebody's own that says nothing of its embeddings."""

    config_class = GruConfig

    def __init__(self, config: GruConfig, width: int = 8) -> None:
        super().__init__(config)
        self.table = nn.Embedding(TOKENS, 16)
        self.layer = nn.GRU(16, width, batch_first=True, bidirectional=True)

    def forward(self, input_ids, attention_mask=None, **_):
        return BaseModelOutput(last_hidden_state=self.layer(self.table(input_ids))[0])


class FoundGru(Gru):
    """One that says where they are, and not how to change them."""

    def get_input_embeddings(self) -> nn.Module:
        return self.table


class Plain(nn.Module):
    config = SimpleNamespace(hidden_size=16, model_type="plain")


def encoder(body: nn.Module) -> TextEncoder:
    return TextEncoder("mine", body, letter_pair_tokenizer())


@pytest.mark.parametrize("make", [gpt2, lambda: bert(is_decoder=True)], ids=["gpt2", "decoder"])
def test_a_body_that_reads_left_to_right_is_refused(make, tmp_path):
    line = r"encoder .* \((gpt2|bert)\) reads left to right, so its first token"
    body = make()
    with pytest.raises(UserError, match=line):
        encoder_of((body, letter_pair_tokenizer()))
    body.save_pretrained(tmp_path)
    letter_pair_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UserError, match=line):
        load_encoder(PretrainedEncoder(str(tmp_path)))


def test_a_body_with_a_decoder_is_refused():
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    config = BartConfig(vocab_size=2000, decoder_ffn_dim=16, **sizes)
    with pytest.raises(UserError, match=r"\(bart\) has a decoder too; use an encoder"):
        encoder_of((BartModel(config), letter_pair_tokenizer()))


@pytest.mark.parametrize("make", [bert, xlnet, lambda: Gru(GruConfig())])
def test_others_are_taken_and_left_as_they_were(make):
    body = make().train()
    state = torch.random.get_rng_state()
    check_body(encoder(body))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(part.training for part in body.modules())


class OtherConfig(PretrainedConfig):
    model_type = "other"


class Fails(Gru):
    def forward(self, input_ids):
        raise AssertionError("is called with a mask")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (Plain(), "its body, Plain, is not a PreTrainedModel"),
        (Gru(OtherConfig()), "the configuration of its body has no hidden_size"),
        (Gru(GruConfig(), width=3), r"states of shape \(2, 3, 6\) .* has to be \(2, 3, 16\)"),
        (Fails(GruConfig()), r"fails at input_ids and attention_mask .* \(TypeError: "),
    ],
)
def test_a_body_of_another_kind_is_refused_in_one_line(body, line):
    with pytest.raises(UserError, match=line) as caught:
        check_body(encoder(body))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (SimpleNamespace(), r"encoder SimpleNamespace has no load\(\)"),
        (SimpleNamespace(load=lambda: None), "returned NoneType; it has to return a TextEncoder"),
        (SimpleNamespace(load=Plain), "returned Plain; it has to return a TextEncoder"),
        (SimpleNamespace(load=lambda: encoder(Plain())), "is not a PreTrainedModel"),
    ],
)
def test_a_source_has_to_load_an_encoder(source, line):
    with pytest.raises(UserError, match=line):
        load_encoder(source)


def test_the_usual_encoders_are_loaded():
    assert isinstance(load_encoder(TinyEncoder()), TextEncoder)


@pytest.mark.parametrize("kind", [Gru, FoundGru])
def test_embeddings_that_cannot_be_replaced_stay(kind):
    body = kind(GruConfig())
    use_kernels(body)
    assert type(body.table) is nn.Embedding


def test_masked_language_modelling_needs_the_embeddings():
    with pytest.raises(UserError, match=r"give Gru a method get_input_embeddings\(\)"):
        encoder(Gru(GruConfig())).new_mlm_head()
    assert encoder(FoundGru(GruConfig())).new_mlm_head()
