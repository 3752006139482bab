"""Attention within the texts of a packed row against each text by itself."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tartan.kernels import attention as module_under_test
from tartan.kernels.attention import attention
from tartan.kernels.packed_row import PackedRow
from tests.encoders.derivatives import assert_same_derivatives

HEADS, SIZE = 2, 3


class Layer(torch.nn.Module):
    is_causal = False


def row_of(lengths, dtype=torch.float64):
    """Return query, key and value of a row, as layers lay them out."""
    torch.manual_seed(0)
    shape = (1, sum(lengths), HEADS, SIZE)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3)]


def packed(row, lengths, pairs=None, **options):
    query, key, value = (tensor.transpose(1, 2) for tensor in row)
    pair_mask = None if pairs is None else torch.cat([own.flatten() for own in pairs])
    packing = PackedRow(lengths, torch.tensor(lengths), sum(lengths), pair_mask)
    assert not packing.used
    found, weights = attention(Layer(), query, key, value, None, packing=packing, **options)
    assert packing.used
    assert weights is None
    return found


def one_by_one(row, lengths, window=None, pairs=None):
    """Compute plain attention of each text, written out."""
    found = []
    texts = zip(*(tensor[0].split(lengths) for tensor in row), strict=True)
    for text, (query, key, value) in enumerate(texts):
        scores = torch.einsum("qhs,khs->hqk", query, key) / SIZE**0.5
        places = torch.arange(len(query))
        if window is not None:
            scores = scores.masked_fill((places[:, None] - places).abs() >= window, -torch.inf)
        if pairs is not None:
            scores = scores.masked_fill(~pairs[text], -torch.inf)
        found.append(torch.einsum("hqk,khs->qhs", F.softmax(scores, dim=-1), value))
    return torch.cat(found)[None]


texts = st.lists(st.integers(1, 20), min_size=1, max_size=9)


@pytest.fixture(autouse=True, scope="module")
def _drop_nothing():
    """While the rate is above 0, so that the calls are not left to torch."""
    with pytest.MonkeyPatch.context() as patch:
        ones = lambda shape, p, dtype: torch.ones(shape, dtype=dtype)  # noqa: E731
        patch.setattr(module_under_test, "dropout_factors", ones)
        yield


@settings(max_examples=40)
@given(texts, st.sampled_from([None, 4]), st.sampled_from([0.0, 0.5]))
def test_each_text_attends_to_itself_only(lengths, window, dropout):
    row = row_of(lengths)
    found = packed(row, lengths, dropout=dropout, sliding_window=window)
    assert_same_derivatives(found, one_by_one(row, lengths, window), row)


@settings(max_examples=25)
@given(texts, st.integers(0, 99), st.sampled_from([0.0, 0.5]))
def test_tokens_attend_as_the_mask_of_pairs_says(lengths, seed, dropout):
    draws = torch.Generator().manual_seed(seed)
    pairs = [torch.rand((n, n), generator=draws) < 0.5 for n in lengths]
    for own in pairs:  # at least one each, and not the same in all texts
        own[torch.arange(len(own)), torch.randperm(len(own), generator=draws)] = True
    row = row_of(lengths)
    found = packed(row, lengths, pairs, dropout=dropout)
    assert_same_derivatives(found, one_by_one(row, lengths, pairs=pairs), row)
