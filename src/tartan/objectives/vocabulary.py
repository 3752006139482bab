"""Describes an encoder's vocabulary for objectives that replace or predict tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError

_SPACES = ("", "\u0120", "\u2581")
"""Prefixes of a token after a space: none, that of byte-level BPE, that of SentencePiece."""


@dataclass(frozen=True)
class Vocabulary:
    """An encoder's vocabulary.

    Attributes:
        size: number of tokens.
        mask_id: id of the mask token.
        special_ids: ids of special tokens, which are never predicted nor changed, ascending.
        sentence_ends: ids of full stops, exclamation and question marks, ascending.
    """

    size: int
    mask_id: int
    special_ids: np.ndarray
    sentence_ends: np.ndarray

    @classmethod
    def of(cls, encoder: TextEncoder, objective: str) -> Vocabulary:
        """Return the vocabulary of an encoder.

        Args:
            encoder: the encoder.
            objective: name of the objective that needs it, for messages.

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
