"""Packed rows through the kernels for a GPU: torch's own on `meta`, a stand-in where they compute.

Here "a GPU" is the CPU, or `meta`, which the code is told is none.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.nn.attention import varlen as torchs

from tartan.kernels import packed_row
from tartan.kernels.attention import attention
from tartan.kernels.packed_row import PackedRow
from tartan.kernels.packing import packed_states
from tartan.objectives.layout import Layout
from tests.encoders.bodies import KINDS, OWN_ATTENTION
from tests.kernels.test_packing import (
    assert_padding_changes_nothing,
    encoder_of,
    rows_of,
    states_of,
)

PACKED = sorted(KINDS.keys() - OWN_ATTENTION)
META = torch.device("meta")


SIGNATURE = inspect.signature(torchs.varlen_attn)


class VarlenAttn:
    """Computes in the type that it is given, and notes its calls.

    Attributes:
        calls: the arguments of each, by name.
    """

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **kwargs):
        bound = SIGNATURE.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        self.calls.append(given)
        ends, longest = given["cu_seq_q"], given["max_q"]
        assert ends.dtype == torch.int32
        assert torch.equal(ends, given["cu_seq_k"])
        assert int(ends[-1]) == len(given["query"])
        lengths = ends.diff().tolist()
        assert max(lengths) == longest == given["max_k"]
        left, right = given["window_size"]
        found = []
        rows = (given[name].split(lengths) for name in ("query", "key", "value"))
        for query, key, value in zip(*rows, strict=True):
            scale = query.shape[-1] ** -0.5 if given["scale"] is None else given["scale"]
            scores = torch.einsum("qhs,khs->hqk", query, key) * scale
            apart = torch.arange(len(query)) - torch.arange(len(query))[:, None]
            far = (apart > right) if right >= 0 else torch.zeros_like(apart, dtype=torch.bool)
            far |= (apart < -left) if left >= 0 else far
            weights = F.softmax(scores.masked_fill(far, -torch.inf), dim=-1)
            found.append(torch.einsum("hqk,khs->qhs", weights, value))
        return torch.cat(found)


class Layer(torch.nn.Module):
    is_causal = False


@pytest.fixture
def varlen_attn(monkeypatch):
    """The CPU as a GPU with `varlen_attn`, which takes float64 too."""
    stand_in = VarlenAttn()
    monkeypatch.setattr(packed_row, "usable_kernels", lambda device: ("varlen_attn",))
    monkeypatch.setattr(packed_row, "_function", lambda kernel: stand_in)
    monkeypatch.setattr(packed_row, "TYPES", (*packed_row.TYPES, torch.float64))
    return stand_in


def row_of(lengths, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(1, 2, sum(lengths), 8, dtype=dtype) for _ in range(3)]


@pytest.mark.parametrize("kind", PACKED)
def test_states_and_gradients_are_those_with_padding(kind, varlen_attn):
    encoder = encoder_of(kind)
    assert encoder.supports_packing
    varlen_attn.calls.clear()
    encoder.body.double()
    assert_padding_changes_nothing(encoder, rows_of(encoder, pairs=False))
    assert [call["query"].dtype for call in varlen_attn.calls] == [torch.float64] * 2  # a layer


def test_a_window_is_half_of_it_without_the_token_itself(varlen_attn):
    sizes = {"local_attention": 8, "global_attn_every_n_layers": 2}
    encoder = encoder_of("modernbert", **sizes)
    assert encoder.supports_packing
    encoder.body.double().eval()
    rows = rows_of(encoder, pairs=False)
    varlen_attn.calls.clear()
    ours, theirs = (states_of(encoder, rows, packed) for packed in (True, False))
    windows = [given["window_size"] for given in varlen_attn.calls]
    assert sorted(windows) == [(-1, -1), (4, 4)]
    assert float((ours - theirs).abs().max()) < 1e-6


# X-MOD itself reads back which language each text has
@pytest.mark.parametrize("kind", sorted(set(PACKED) - {"xmod"}))
def test_torchs_own_kernel_takes_a_row_and_reads_nothing_back(kind, monkeypatch):
    monkeypatch.setattr(packed_row, "usable_kernels", lambda device: ("varlen_attn",))
    encoder = encoder_of(kind)
    rows = rows_of(encoder, pairs=False)
    assert encoder.supports_packing
    ids = [np.array(row["input_ids"]) for row in rows]
    ((_, made),) = Layout.of(encoder, 99, True).parts(rows, ids)
    inputs = {n: v.to(META) if isinstance(v, torch.Tensor) else v for n, v in made.items()}
    body = encoder.body.to(META, torch.bfloat16).eval()
    states = packed_states(body, inputs)
    assert states.shape == (*inputs["input_ids"].shape, 32)
    states.sum().backward()
    queries = [p for n, p in body.named_parameters() if n.endswith("weight") and p.ndim == 2]
    assert any(p.grad is not None and p.grad.device == META for p in queries)


def test_in_autocast_kernels_get_its_type(varlen_attn):
    query, key, value = row_of([5, 3], torch.float32)
    row = PackedRow([5, 3], torch.tensor([5, 3]), 8)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attention(Layer(), query, key, value.bfloat16(), None, packing=row)
    assert row.used
    assert {varlen_attn.calls[0][n].dtype for n in ("query", "key", "value")} == {torch.bfloat16}
    assert found.dtype == torch.bfloat16
    assert found.shape == (1, 8, 2, 8)
