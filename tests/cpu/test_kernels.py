"""One call puts the kernels into a body and its heads; a new encoder has none of them."""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertModel

from tartan.cpu.attention import IMPLEMENTATION
from tartan.cpu.dropout import FastDropout
from tartan.cpu.kernels import use_cpu_kernels
from tartan.cpu.row_gradients import RowGradientBody, RowGradientEmbedding
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.classification import Classification


def kinds(module):
    return {type(m) for m in module.modules() if isinstance(m, nn.Dropout | nn.Embedding)}


def test_a_new_encoder_and_head_have_torchs_own_modules():
    encoder = TinyEncoder(hidden_size=8).load()
    head = Classification(3).new_head(encoder)
    assert kinds(nn.ModuleList([encoder.body, head])) == {nn.Dropout, nn.Embedding}
    assert encoder.body.config._attn_implementation == "sdpa"


def test_one_call_replaces_modules_of_body_and_head_and_a_second_changes_nothing():
    encoder = TinyEncoder(hidden_size=8).load()
    whole = nn.ModuleDict({"body": encoder.body, "head": Classification(3).new_head(encoder)})
    before = dict(whole.named_parameters())
    use_cpu_kernels(whole)
    assert FastDropout in kinds(whole)
    assert nn.Dropout not in kinds(whole)
    words = encoder.body.get_input_embeddings()
    assert type(words) is RowGradientEmbedding
    assert encoder.body.config._attn_implementation == IMPLEMENTATION
    assert all(before[name] is p for name, p in whole.named_parameters())
    use_cpu_kernels(whole)
    assert encoder.body.get_input_embeddings() is words


def test_a_model_within_another_is_not_changed():
    class Around(BertModel):
        def __init__(self, config):
            super().__init__(config)
            self.inner = BertModel(config)

    around = Around(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1))
    use_cpu_kernels(around)
    assert type(around.get_input_embeddings()) is RowGradientEmbedding
    assert type(around.inner.get_input_embeddings()) is nn.Embedding


def test_a_body_that_is_not_of_transformers_keeps_its_embedding():
    body = nn.Sequential(nn.Embedding(5, 2), nn.Dropout(0.5))
    use_cpu_kernels(body)
    assert [type(part) for part in body] == [nn.Embedding, FastDropout]


def test_row_gradients_of_a_body_equal_torchs_and_add_up():
    encoder = TinyEncoder(hidden_size=8, dropout=0.0).load()
    body, ids = encoder.body, torch.tensor([[2, 5, 7, 3]])
    use_cpu_kernels(body)
    shared = RowGradientBody(body)
    expected = torch.autograd.grad(
        body(input_ids=ids).last_hidden_state.square().sum(), shared.parameters, allow_unused=True
    )
    for _ in range(2):  # the second adds to what the first has left
        shared.backward(body(input_ids=ids).last_hidden_state.square().sum(), shared.parameters)
    for parameter, gradient in zip(shared.parameters, expected, strict=True):
        if gradient is not None:
            torch.testing.assert_close(parameter.grad, 2 * gradient)
