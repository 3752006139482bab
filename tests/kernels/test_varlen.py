"""Which kernel attends within packed rows, of those that there are."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from tartan.kernels import packed_row as kernels
from tartan.kernels.packed_row import kernel_for, within_texts

BOTH = ("varlen_attn", "flash_attn")


@pytest.fixture(autouse=True)
def _looked_up_anew():
    kernels._function.cache_clear()
    yield
    kernels._function.cache_clear()


@pytest.fixture
def flash_attn(monkeypatch):
    """The package flash-attn, whose kernel notes how it is called."""
    calls = []

    def flash_attn_varlen_func(  # the signature of flash-attn 2.8
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
        softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
        deterministic=False, return_attn_probs=False, block_table=None,
    ):  # fmt: skip
        calls.append((dropout_p, softmax_scale, causal, window_size, deterministic))
        return q

    module = ModuleType("flash_attn")
    module.flash_attn_varlen_func = flash_attn_varlen_func
    monkeypatch.setitem(sys.modules, "flash_attn", module)
    return calls


@pytest.mark.parametrize(
    ("dtype", "dropout", "size", "usable", "expected"),
    [
        (torch.float16, 0.0, 64, BOTH, "varlen_attn"),
        (torch.bfloat16, 0.1, 64, BOTH, "flash_attn"),
        (torch.bfloat16, 0.1, 64, BOTH[:1], None),
        (torch.bfloat16, 0.0, 64, BOTH[1:], "flash_attn"),
        (torch.bfloat16, 0.0, 256, BOTH, "varlen_attn"),
        (torch.bfloat16, 0.0, 264, BOTH, None),
        (torch.bfloat16, 0.0, 20, BOTH, None),
        (torch.float32, 0.0, 64, BOTH, None),
        (torch.bfloat16, 0.0, 64, (), None),
    ],
)
def test_the_choice_is_one_of_what_is_there_and_asked_for(dtype, dropout, size, usable, expected):
    assert kernel_for(dtype, dropout, size, usable) == expected


def test_flash_attention_is_given_dropout_and_adds_up_in_order(flash_attn):
    row = torch.zeros(5, 2, 8)
    ends = torch.tensor([0, 2, 5], dtype=torch.int32)
    found = within_texts(
        "flash_attn", (row, row, row), ends, 3, dropout=0.1, scale=0.5, window=4
    )  # fmt: skip
    assert found is row
    assert flash_attn == [(0.1, 0.5, False, (3, 3), True)]
