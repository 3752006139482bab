"""Replaces tokens of an encoder's vocabulary, as BERT does (Devlin et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.settings import Checked, Fraction, Share

Rng = np.random.Generator
_SPACES = ("", "\u0120", "\u2581")
"""Prefixes of a token after a space: none, that of byte-level BPE, that of SentencePiece."""


@dataclass(frozen=True)
class Vocabulary:
    """An encoder's vocabulary; ids are ascending."""

    size: int
    mask_id: int
    special_ids: np.ndarray  # of tokens that are never predicted nor changed
    sentence_ends: np.ndarray  # of full stops, exclamation and question marks

    @classmethod
    def of(cls, encoder: TextEncoder, objective: str) -> Vocabulary:
        """Return the vocabulary of an encoder with a mask token, for the objective of that name."""
        tokenizer = require_text_encoder(encoder, objective).tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"encoder {encoder.name} has no mask token, which {objective} needs; use "
                "auxiliary=none with method=finetune, or another encoder"
            )
        special = np.asarray(sorted(tokenizer.all_special_ids), dtype=np.int64)
        ids = tokenizer.get_vocab()
        marks = {ids[space + mark] for space in _SPACES for mark in ".!?" if space + mark in ids}
        ends = np.asarray(sorted(marks), dtype=np.int64)
        return cls(len(tokenizer), int(tokenizer.mask_token_id), special, ends)


@dataclass(frozen=True)
class Corruption(Checked):
    """Replaces a chosen token by the mask token or a random one, or keeps it.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
        masked: share of the chosen tokens that are replaced by the mask token (paper: 0.8).
        random: share of the chosen tokens that are replaced by a random token (paper: 0.1); the
            others are kept.
    """

    probability: Share = 0.15
    masked: Fraction = 0.8
    random: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masked + self.random > 1:
            raise UserError(f"masked={self.masked} and random={self.random} sum to more than 1")

    def draw(self, count: int, vocabulary: Vocabulary, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        """Draw numbers in [0, 1) and tokens for `corrupted`, `(count,)` each."""
        return rng.random(count), rng.integers(0, vocabulary.size, count)

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        drawn: tuple[np.ndarray, np.ndarray],
        vocabulary: Vocabulary,
    ) -> np.ndarray:
        """Return the tokens with the `chosen` ones, bool, corrupted: all `(tokens,)`."""
        action, replacement = drawn
        masked = chosen & (action < self.masked)
        randomised = chosen & ~masked & (action < self.masked + self.random)
        return np.where(masked, vocabulary.mask_id, np.where(randomised, replacement, tokens))
