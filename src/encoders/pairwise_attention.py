"""Attention masks that say of each pair of positions whether one attends to the other.

Transformers takes such a mask, of four dimensions, in place of one that marks padding, and hands it
to the attention function as it is. Not every architecture does: some have masks of their own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from src.encoders.text_encoder import TextEncoder
from src.errors import UserError

_LENGTH = 6
_CLOSE = 1e-4
"""Of states, which are of the order of 1: float32 kernels for either mask differ by 1e-6."""


def pairwise_mask(body: nn.Module, pair_mask: Tensor) -> Tensor:
    """The mask that `body`'s attention takes, `(examples, 1, positions, positions)`.

    Args:
        pair_mask: row by column, which positions a position attends to, bool `(examples, positions,
            positions)`; in each row at least one.
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
    """Try the encoder out on a text of a few tokens.

    Args:
        what: the part of the config that needs such masks, for the message.

    Raises:
        UserError: it takes no such masks, or they do not do what they say.
    """
    body = encoder.body
    was_training = body.training
    body.eval()
    try:
        fits = _masks_hold(encoder)
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
        fits = False  # what architectures raise at a mask of a form they do not know
    finally:
        body.train(was_training)
    if not fits:
        raise UserError(
            f"{what} needs attention masks by pairs of positions, which encoder {encoder.name} "
            f"({body.config.model_type}) does not take; use a BERT- or RoBERTa-like one"
        )


@torch.no_grad()
def _masks_hold(encoder: TextEncoder) -> bool:
    """Whether masks and positions do what they say.

    A full mask changes nothing, a causal one hides what comes later and nothing else, and tokens in
    another order, each with its own position, have the same states.
    """
    body = encoder.body
    device = next(body.parameters()).device
    special = set(encoder.tokenizer.all_special_ids)
    ordinary = [i for i in range(len(encoder.tokenizer)) if i not in special][: _LENGTH + 1]
    if len(ordinary) <= _LENGTH:
        raise ValueError("the tokenizer has too few pieces to try the encoder out")
    text = torch.tensor([ordinary[:_LENGTH]], device=device)
    other = text.clone()
    other[0, -1] = ordinary[_LENGTH]
    places = encoder.first_position + torch.arange(_LENGTH, device=device)[None]
    full = torch.ones(1, _LENGTH, _LENGTH, dtype=torch.bool, device=device)

    def states(ids: Tensor, pair_mask: Tensor, positions: Tensor = places) -> Tensor:
        mask = pairwise_mask(body, pair_mask)
        found: Tensor = body(
            input_ids=ids, attention_mask=mask, position_ids=positions
        ).last_hidden_state[0]
        return found

    usual = body(input_ids=text, attention_mask=torch.ones_like(text)).last_hidden_state[0]
    all_seen, causal = states(text, full), states(text, full.tril())
    turned = states(text.flip(1), full, places.flip(1)).flip(0)
    moved = (states(other, full) - all_seen)[:-1].abs().amax(dim=1)
    leaked = (states(other, full.tril()) - causal)[:-1].abs().amax(dim=1)
    return bool(
        (all_seen - usual).abs().max() < _CLOSE
        and (all_seen - turned).abs().max() < _CLOSE
        and moved.min() > 0
        and (leaked < 1e-3 * moved).all()
    )
