"""The tokens of an encoder that predicts or replaces tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.encoders.text_encoder import TextEncoder, require_text_encoder
from src.errors import UserError

_SPACES = ("", "\u0120", "\u2581")
"""How a piece says that a space comes before it: not, in byte-level BPE, in SentencePiece."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that may be put in a token's place.

    Attributes:
        size: number of pieces.
        mask_id: the mask token.
        special_ids: tokens that are never predicted nor changed, ascending.
        sentence_ends: tokens that are a full stop, exclamation or question mark, ascending.
    """

    size: int
    mask_id: int
    special_ids: np.ndarray
    sentence_ends: np.ndarray

    @classmethod
    def of(cls, encoder: TextEncoder, objective: str) -> Vocabulary:
        """Return an encoder's.

        Args:
            objective: what needs it, for messages.

        Raises:
            UserError: the encoder does not read text, or has no mask token.
        """
        tokenizer = require_text_encoder(encoder, objective).tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"encoder {encoder.name} has no mask token, which {objective} needs; use "
                "auxiliary=none with method=finetune, or another encoder"
            )
        special = np.asarray(sorted(tokenizer.all_special_ids), dtype=np.int64)
        known = tokenizer.get_vocab()
        marks = (known.get(space + mark) for space in _SPACES for mark in ".!?")
        ends = np.asarray(sorted({i for i in marks if i is not None}), dtype=np.int64)
        return cls(len(tokenizer), int(tokenizer.mask_token_id), special, ends)
