"""One call puts the kernels into a body and its heads; a new encoder has none of them."""

from __future__ import annotations

from torch import nn

from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.attention import IMPLEMENTATION, use_kernels
from tartan.kernels.dropout import FastDropout
from tartan.objectives.classification import Classification


def dropouts(module):
    return {type(m) for m in module.modules() if isinstance(m, nn.Dropout)}


def test_one_call_replaces_modules_of_body_and_head_and_a_second_changes_nothing():
    encoder = TinyEncoder(hidden_size=8).load()
    whole = nn.ModuleDict({"body": encoder.body, "head": Classification(3).new_head(encoder)})
    assert dropouts(whole) == {nn.Dropout}
    assert encoder.body.config._attn_implementation == "sdpa"
    before = dict(whole.named_parameters())
    use_kernels(whole)
    parts = list(whole.modules())
    assert dropouts(whole) == {FastDropout}
    assert encoder.body.config._attn_implementation == IMPLEMENTATION
    assert all(before[name] is p for name, p in whole.named_parameters())
    use_kernels(whole)
    assert dropouts(whole) == {FastDropout}
    assert len(list(whole.modules())) == len(parts)


def test_a_body_that_is_not_of_transformers_gets_its_dropout():
    body = nn.Sequential(nn.Embedding(5, 2), nn.Dropout(0.5))
    use_kernels(body)
    assert [type(part) for part in body] == [nn.Embedding, FastDropout]
