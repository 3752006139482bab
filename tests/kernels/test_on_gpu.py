"""Packed rows on a GPU against padded texts; `make gpu-check` runs these where there is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.kernels.packed_row import usable_kernels
from tartan.kernels.packing import packed_states
from tartan.objectives.layout import Layout, spans
from tests.kernels.test_packed_row import PACKED
from tests.kernels.test_packing import encoder_of, rows_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")
WORSE = 2
"""How many times as far from float32 as padded bf16 packed bf16 may be: both round alike."""


def needs(kernel):
    return pytest.mark.skipif(kernel not in usable_kernels(), reason=f"no {kernel} here")


def parts_of(encoder, rows):
    """The texts as one packed part and as one padded part, on the GPU."""
    ids = [np.array(row["input_ids"]) for row in rows]
    for packed in (True, False):
        ((_, inputs),) = Layout.of(encoder, 99, packed).parts(rows, ids)
        yield {n: v.to(GPU) if isinstance(v, torch.Tensor) else v for n, v in inputs.items()}


def states_and_gradient(body, inputs, dtype):
    """States of all tokens, and the gradient of their random sum, as one vector each."""
    body.zero_grad()
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        if "lengths" in inputs:
            states = packed_states(body, inputs)
        else:
            states = body(**inputs).last_hidden_state
    starts, lengths = (each.tolist() for each in spans(inputs))
    flat = states.flatten(0, 1).float()
    texts = torch.cat([flat[s : s + n] for s, n in zip(starts, lengths, strict=True)])
    torch.manual_seed(0)
    (texts * torch.randn_like(texts)).sum().backward()
    gradient = torch.cat([p.grad.flatten() for p in body.parameters() if p.grad is not None])
    return texts.detach(), gradient


def far(found, expected):
    return float((found - expected).norm() / expected.norm())


@needs("varlen_attn")
@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("kind", PACKED)
def test_bf16_is_as_near_to_float32_packed_as_padded(kind, windows):
    if windows and kind != "modernbert":
        pytest.skip("has no windows")
    narrow = {"local_attention": 8, "global_attn_every_n_layers": 2} if windows else {}
    encoder = encoder_of(kind, **narrow)
    encoder.body.to(GPU).eval()  # no dropout
    packed, padded = parts_of(encoder, rows_of(encoder, pairs=False))
    exact = states_and_gradient(encoder.body, padded, torch.float32)
    ours = states_and_gradient(encoder.body, packed, torch.bfloat16)
    theirs = states_and_gradient(encoder.body, padded, torch.bfloat16)
    for found, usual, expected in zip(ours, theirs, exact, strict=True):
        assert far(found, expected) < WORSE * far(usual, expected) + 1e-3


@needs("varlen_attn")
def test_a_pass_does_not_wait_for_the_gpu():
    encoder = encoder_of("roberta")
    encoder.body.to(GPU).eval()
    packed, _ = parts_of(encoder, rows_of(encoder, pairs=False))
    states_and_gradient(encoder.body, packed, torch.bfloat16)
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.autocast("cuda", torch.bfloat16):
            packed_states(encoder.body, packed).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs("flash_attn")
def test_dropout_of_flash_attn_has_the_mean_of_none():
    encoder = encoder_of("bert", hidden_dropout_prob=0.0)  # attention's stays: 0.1
    body = encoder.body.to(GPU)
    packed, _ = parts_of(encoder, rows_of(encoder, pairs=False))
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        expected = packed_states(body.eval(), packed).float()
        drawn = [packed_states(body.train(), packed).float() for _ in range(200)]
    assert not torch.equal(drawn[0], drawn[1])
    assert far(torch.stack(drawn).mean(0), expected) < 0.5 * far(drawn[0], expected)
