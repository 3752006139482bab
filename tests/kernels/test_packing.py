"""Bodies have the same states and gradients in a packed row as in a padded batch."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
import transformers as t

from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.kernels.attention import use_kernels
from tartan.kernels.packing import packed_states
from tartan.objectives.layout import Layout, spans
from tests.encoders.bodies import KINDS, OWN_ATTENTION, random_body

LENGTHS = (3, 17, 64, 1, 9, 8, 16)
"""One token, as many as the bodies have positions, and lengths in between."""


def encoder_of(kind: str, **entries) -> TextEncoder:
    body = random_body(kind)
    if entries:
        config = type(body.config).from_dict({**body.config.to_dict(), **entries})
        body = t.AutoModel.from_config(config)
    return TextEncoder(kind, body, letter_pair_tokenizer())


def rows_of(encoder: TextEncoder, pairs: bool) -> list[dict[str, list[int]]]:
    rng = np.random.default_rng(0)
    rows = []
    for length in LENGTHS:
        ids = rng.integers(5, len(encoder.tokenizer), length)
        if length > 8:
            ids[4] = encoder.tokenizer.pad_token_id  # as a random token of masked LM may be
        row = {"input_ids": ids.tolist()}
        if pairs:
            row["token_type_ids"] = [int(place > length // 2) for place in range(length)]
        rows.append(row)
    return rows


def states_of(encoder: TextEncoder, rows: list[dict[str, list[int]]], packed: bool) -> torch.Tensor:
    """Return the states of all tokens, `(tokens, hidden)`, text by text."""
    layout = Layout.of(encoder, 99, packed)
    assert layout.packed == packed
    ((_, inputs),) = layout.parts(rows, [np.array(row["input_ids"]) for row in rows])
    if packed:
        states = packed_states(encoder.body, inputs).flatten(0, 1)
    else:
        states = encoder.body(**inputs).last_hidden_state.flatten(0, 1)
    starts, lengths = spans(inputs)
    return torch.cat([states[s : s + n] for s, n in zip(starts, lengths, strict=True)])


def assert_padding_changes_nothing(encoder: TextEncoder, rows) -> None:
    """Compare states and gradients of a packed row with those of a padded batch."""
    encoder.body.eval()  # no dropout
    parameters, results = dict(encoder.body.named_parameters()), []
    for packed in (True, False):
        states = states_of(encoder, rows, packed)
        torch.manual_seed(0)
        loss = (states * torch.randn_like(states)).sum() / len(states)
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        results.append((states, gradients))
    (ours, own), (theirs, others) = results
    assert float((ours - theirs).abs().max()) < 1e-5
    for name, found, expected in zip(parameters, own, others, strict=True):
        assert (found is None) == (expected is None), name
        if found is not None:
            assert float((found - expected).abs().max()) < 1e-6, name


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - OWN_ATTENTION))
def test_states_and_gradients_are_those_with_padding(kind, pairs):
    encoder = encoder_of(kind)
    if pairs and (kind == "modernbert" or getattr(encoder.body.config, "type_vocab_size", 1) < 2):
        pytest.skip("has no types of tokens")
    use_kernels(encoder.body)
    assert_padding_changes_nothing(encoder, rows_of(encoder, pairs))


@pytest.mark.parametrize("kind", sorted(OWN_ATTENTION))
def test_other_bodies_get_padded_batches_and_warn_once(kind, caplog):
    encoder = encoder_of(kind)
    with caplog.at_level(logging.WARNING, "tartan.encoders.text_encoder"):
        assert not Layout.of(encoder, 4, packed=True).packed
        assert not Layout.of(encoder, 4, packed=True).packed
    (record,) = [r for r in caplog.records if r.name == "tartan.encoders.text_encoder"]
    assert "cannot read several texts as one row" in record.getMessage()


def test_a_body_that_ignores_the_bounds_of_texts_is_an_error():
    body = random_body("bert")
    body.set_attn_implementation("eager")  # Transformers' own, which ignores unknown arguments
    inputs = {
        "input_ids": torch.tensor([[7, 8, 9]]),
        "position_ids": torch.tensor([[0, 1, 0]]),
        "lengths": torch.tensor([2, 1]),
    }
    with pytest.raises(ValueError, match="BertModel cannot read several texts as one row"):
        packed_states(body, inputs)
