"""Composed objectives have the same gradients with packed texts as with padded ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.kernels.attention import use_kernels
from tartan.objectives.layout import is_packed
from tests.encoders.bodies import KINDS, OWN_ATTENTION, random_body
from tests.objectives.spaces import space

SPACE = space("aang_td")
MEMBERS = {name: own.objective for name, own in SPACE.members("aang").items()}
LENGTHS = (3, 17, 64, 5, 9, 8, 16)
"""Lengths of texts; with its queries, the longest exceeds the positions of the bodies."""


def encoder_of(kind):
    body = random_body(kind)
    use_kernels(body)
    return TextEncoder(kind, body.eval(), letter_pair_tokenizer())


def rows_of(encoder):
    rng, special, rows = np.random.default_rng(0), encoder.tokenizer, []
    for length in LENGTHS:
        words = rng.integers(5, len(special), length - 2).tolist()
        ids = [special.cls_token_id, *words, special.sep_token_id]
        row = {"input_ids": ids, "label": length % 3}
        if encoder.uses_token_types:
            row["token_type_ids"] = [int(place > length // 2) for place in range(length)]
        rows.append(row)
    return rows


def loss_and_gradients(name, encoder, packed, micro=99):
    """Return the mean loss of a batch, and its gradients of body and head by parameter."""
    rows, objective = rows_of(encoder), replace(MEMBERS[name], classes=3)
    torch.manual_seed(0)
    head = objective.new_head(encoder).eval()
    collate = objective.collate(encoder, micro, packed=packed, on_cpu=True)
    batch = collate(rows, np.random.default_rng(1))
    assert {is_packed(part.inputs) for part in batch.micro_batches} == {packed}
    body, total = encoder.body, torch.zeros(())
    for part in batch.micro_batches:
        features = objective.features(body, part.inputs)
        losses = objective.losses(body, head, features, objective.targets(part.inputs))
        total = total + losses.sum() / batch.units
    parameters = dict(torch.nn.ModuleList([body, head]).named_parameters())
    values = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
    return total.detach(), dict(zip(parameters, values, strict=True))


def assert_agree(found, expected):
    loss, gradients = found
    other_loss, others = expected
    assert float(loss) == pytest.approx(float(other_loss), abs=1e-6)
    assert any(value is not None and value.abs().max() > 1e-3 for value in others.values())
    for name, value in others.items():
        assert (value is None) == (gradients[name] is None), name
        if value is not None:
            assert float((gradients[name] - value).abs().max()) < 1e-6, name


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - OWN_ATTENTION))
@pytest.mark.parametrize("representation", SPACE.representations)
def test_gradients_are_those_with_padding(representation, kind):
    encoder, name = encoder_of(kind), f"task-replace-{representation}-denoise"
    padded = loss_and_gradients(name, encoder, packed=False)
    assert_agree(loss_and_gradients(name, encoder, packed=True), padded)
