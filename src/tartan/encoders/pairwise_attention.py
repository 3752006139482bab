"""Makes attention masks of pairs of positions, and checks that an encoder respects them.

Transformers takes such a mask, with four dimensions, in place of one that marks padding, and passes
it on to the attention function. Architectures that make masks of their own do not.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tartan.encoders.evaluating import evaluating
from tartan.encoders.text_encoder import TextEncoder
from tartan.errors import UserError

_LENGTH = 6
"""Length of the text on which an encoder is tried out [tokens]."""
_TOLERANCE = 1e-4
"""Largest difference of states that count as equal; states are of the order of 1, and kernels for
either kind of mask differ by about 1e-6 in float32.
"""


def pairwise_mask(body: nn.Module, pair_mask: Tensor) -> Tensor:
    """Return the `attention_mask` for `body`, `(examples, 1, positions, positions)`.

    It is boolean, or, for `eager` attention, of floats that are added to the scores.

    Args:
        body: the body.
        pair_mask: True where the position of the row attends to that of the column, bool
            `(examples, positions, positions)`, with a True in each row.
    """
    allowed = pair_mask[:, None]
    if getattr(body.config, "_attn_implementation", None) != "eager":
        return allowed
    dtype = next(body.parameters()).dtype
    least = torch.finfo(dtype).min
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(
        ~allowed, least
    )


def check_pairwise_attention(encoder: TextEncoder, what: str) -> None:
    """Check on a short text that the encoder respects masks of pairs of positions.

    Args:
        encoder: the encoder.
        what: the part of the config that needs such masks, for the message.

    Raises:
        UserError: the encoder does not take such masks, or does not respect them.
    """
    body = encoder.body
    try:
        with evaluating(body):
            respected = _respects_masks(encoder)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        respected = False  # architectures raise these at a mask that they do not support
    if not respected:
        raise UserError(
            f"{what} needs attention masks of pairs of positions, which encoder {encoder.name} "
            f"({body.config.model_type}) does not take; use a BERT- or RoBERTa-like one"
        )


@torch.no_grad()
def _respects_masks(encoder: TextEncoder) -> bool:
    """Return whether the body respects masks and position ids.

    A full mask must change nothing, a causal one must hide later tokens only, and tokens in another
    order, each with its own position id, must have the same states.
    """
    body = encoder.body
    device = next(body.parameters()).device
    ordinary = encoder.ordinary_tokens[: _LENGTH + 1]
    if len(ordinary) <= _LENGTH:
        raise ValueError("the tokenizer has too few pieces to try the encoder out")
    text = torch.tensor([ordinary[:_LENGTH]], device=device)
    other = text.clone()
    other[0, -1] = ordinary[_LENGTH]
    positions = encoder.first_position + torch.arange(_LENGTH, device=device)[None]
    full = torch.ones(1, _LENGTH, _LENGTH, dtype=torch.bool, device=device)

    def states(ids: Tensor, pair_mask: Tensor, position_ids: Tensor = positions) -> Tensor:
        mask = pairwise_mask(body, pair_mask)
        found: Tensor = body(
            input_ids=ids, attention_mask=mask, position_ids=position_ids
        ).last_hidden_state[0]
        return found

    expected = body(input_ids=text, attention_mask=torch.ones_like(text)).last_hidden_state[0]
    unmasked, causal = states(text, full), states(text, full.tril())
    from_reversed = states(text.flip(1), full, positions.flip(1)).flip(0)
    # another last token must change the other states only where they may attend to it
    changed = (states(other, full) - unmasked)[:-1].abs().amax(dim=1)
    leaked = (states(other, full.tril()) - causal)[:-1].abs().amax(dim=1)
    return bool(
        (unmasked - expected).abs().max() < _TOLERANCE
        and (unmasked - from_reversed).abs().max() < _TOLERANCE
        and changed.min() > 0
        and (leaked < 1e-3 * changed).all()
    )
