"""Operations of forward passes, against counting by hand."""

from __future__ import annotations

import pytest
import torch

from tartan.encoders.heads import MaskedLMHead
from tartan.encoders.tiny import TinyEncoder
from tartan.kernels.packing import packed_states
from tartan.methods import cost
from tartan.methods.cost import ForwardFlops

HIDDEN, LAYERS = 32, 2
MATRICES = 4 * HIDDEN * HIDDEN + 2 * HIDDEN * 4 * HIDDEN
"""Weights of a layer of the tiny encoder."""


@pytest.fixture
def counted(monkeypatch):
    """An entry for each pass whose operators were counted."""
    passes, enter = [], cost._Counting.__enter__
    monkeypatch.setattr(cost._Counting, "__enter__", lambda self: passes.append(1) or enter(self))
    return passes


def spent_by(module, *inputs):
    """The operations of a pass for each of the inputs."""
    spent = []
    ForwardFlops([module], spent.append)
    with torch.no_grad():
        for arguments in inputs:
            module(*arguments)
    return spent


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_an_encoder_costs_what_its_matrices_and_its_attention_do(dropout, counted):
    """Fused attention (no dropout) and plain products (dropout) count alike, also in packed rows.

    These cost their tokens and pairs, which two passes tell.
    """
    body = TinyEncoder(dropout=dropout).load().body
    (spent,) = spent_by(body, [torch.ones(3, 11, dtype=torch.int64)])
    attention = 2 * 11 * HIDDEN  # queries by keys, and weights by values
    assert spent == 2 * 3 * 11 * LAYERS * (MATRICES + attention)
    body, spent = TinyEncoder(dropout=dropout).load().body, []
    ForwardFlops([body], spent.append)
    counted.clear()
    texts = [[11, 11, 11], [1, 2, 7], [30], [16, 9, 3]]
    with torch.no_grad():
        for lengths in texts:
            places = torch.cat([torch.arange(length) for length in lengths])[None]
            row = {"input_ids": torch.ones_like(places), "position_ids": places}
            packed_states(body, {**row, "lengths": torch.tensor(lengths)})
    pairs = [3 * 11**2, 3 * 7**2, 30**2, 2 * 16**2 + 3**2]  # places left over attend too
    assert spent == [
        2 * LAYERS * (sum(lengths) * MATRICES + 2 * square * HIDDEN)
        for lengths, square in zip(texts, pairs, strict=True)
    ]
    assert len(counted) == 2


def test_a_masked_lm_head_costs_the_rows_that_it_fills_up(counted):
    embeddings, rows = torch.randn(40, 5), (3, 16, 17, 60, 1, 33)
    inputs = ([torch.ones(masked, 6), embeddings] for masked in rows)
    filled_up = [16, 16, 32, 64, 16, 48]
    spent = spent_by(MaskedLMHead(6, 40, 5), *inputs)
    assert spent == [2 * rows * (6 * 5 + 5 * 40) for rows in filled_up]
    assert len(counted) == 2
