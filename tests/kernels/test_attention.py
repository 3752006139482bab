"""Attention with dropout on a CPU against torch's own, and the cases that are left to torch."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function

from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.kernels import attention as module_under_test
from tartan.kernels.attention import IMPLEMENTATION, attention, use_tartan_attention
from tests.encoders.bodies import KINDS, OWN_ATTENTION, random_body

SHAPE = (3, 2, 7, 4)


class Layer(nn.Module):
    is_causal = False


@pytest.fixture
def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(SHAPE, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def masks() -> dict[str, torch.Tensor | None]:
    allowed = torch.ones(3, 1, 7, 7, dtype=torch.bool)
    allowed[0, :, :, 5:] = False
    allowed[2, :, :, 1:] = False
    added = torch.randn(3, 1, 7, 7, dtype=torch.float64)
    return {"none": None, "of positions": allowed, "added": added}


def drop_nothing(monkeypatch) -> None:
    monkeypatch.setattr(
        module_under_test, "dropout_factors", lambda shape, p, dtype: torch.ones(shape, dtype=dtype)
    )


def test_each_weight_is_dropped_by_itself_and_the_mean_stays():
    """With the identity matrix as values, the output is the weights after dropout."""
    torch.manual_seed(0)
    size, rate = 64, 0.25
    query, key = (torch.randn(8, 4, size, size) for _ in range(2))
    value = torch.eye(size).expand(8, 4, size, size).contiguous()
    whole = F.softmax(query @ key.transpose(2, 3) / size**0.5, dim=-1)
    dropped, _ = attention(Layer(), query, key, value, None, dropout=rate)
    dropped = dropped.transpose(1, 2)
    zero = dropped == 0
    count = zero.numel()
    assert abs(float(zero.double().mean()) - rate) < 5 * (rate * (1 - rate) / count) ** 0.5
    assert torch.allclose(dropped[~zero], whole[~zero] / (1 - rate), rtol=1e-4)


@pytest.mark.parametrize("kind", masks())
@pytest.mark.parametrize("trains", [True, False])
def test_without_dropout_16_bits_are_trained_in_float32(kind, trains, monkeypatch):
    torch.manual_seed(0)
    inputs = [torch.randn(SHAPE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    mask = masks()[kind]
    mask = mask.bfloat16() if kind == "added" else mask
    types, torchs = [], F.scaled_dot_product_attention
    monkeypatch.setattr(
        F,
        "scaled_dot_product_attention",
        lambda query, *a, **k: types.append(query.dtype) or torchs(query, *a, **k),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(trains):
        found, _ = attention(Layer(), *inputs, mask)
    assert types == [torch.float32 if trains else torch.bfloat16]
    assert found.dtype == torch.bfloat16
    wide = None if mask is None else mask.double() if kind == "added" else mask
    exact = torchs(*(t.double() for t in inputs), attn_mask=wide).transpose(1, 2)
    assert float((found - exact).abs().max() / exact.abs().max()) < 2**-7
    if trains:
        found.sum().backward()
        assert all(tensor.grad.dtype == torch.bfloat16 for tensor in inputs)


def run(body, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
    torch.manual_seed(0)
    return body(**tokens).last_hidden_state


@pytest.fixture(scope="module")
def tokens() -> dict[str, torch.Tensor]:
    texts = ["a short text", "a text that is quite a bit longer than the other"]
    return dict(letter_pair_tokenizer()(texts, return_tensors="pt", padding=True))


@pytest.fixture
def always_ours(monkeypatch):
    """Have bodies call `attention` with a rate above 0, while nothing is dropped."""

    def ours(*arguments, dropout, **options):
        return attention(*arguments, dropout=0.5, **options)

    drop_nothing(monkeypatch)
    AttentionInterface.register(IMPLEMENTATION, ours)
    yield
    AttentionInterface.register(IMPLEMENTATION, attention)


# these two hand position ids on, with which dropout is left to torch
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"eurobert", "nomic-bert"}))
def test_every_body_computes_the_same_as_before(kind, tokens, always_ours):
    tokens = {k: v for k, v in tokens.items() if k != "token_type_ids"}
    plain = random_body(kind).eval()
    changed = copy.deepcopy(plain)
    use_tartan_attention(changed)
    assert (changed.config._attn_implementation == IMPLEMENTATION) == (kind not in OWN_ATTENTION)
    assert torch.allclose(run(changed, tokens), run(plain, tokens), atol=1e-5)


def test_the_name_of_the_implementation_is_not_saved(tmp_path):
    body = random_body("roberta")
    use_tartan_attention(body)
    body.save_pretrained(tmp_path)
    assert IMPLEMENTATION not in json.dumps(json.loads((tmp_path / "config.json").read_text()))


def test_a_gpus_mask_is_not_read_by_the_host():
    """A branch on its values would wait for the GPU; on `meta`, which has none, it is an error."""
    given = {
        "batch_size": 2, "q_length": 3, "kv_length": 3, "allow_is_causal_skip": False,
        "allow_is_bidirectional_skip": True, "mask_function": bidirectional_mask_function,
    }  # fmt: skip
    mask = AttentionMaskInterface()[IMPLEMENTATION]
    on_cpu = torch.ones(2, 3, dtype=torch.bool)
    assert mask(**given, attention_mask=on_cpu) is None  # nothing is padded
    found = mask(**given, attention_mask=on_cpu.to("meta"), device="meta")
    assert found.shape == (2, 1, 3, 3)
