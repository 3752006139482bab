"""Corrupts tokens as BERT does (Devlin et al., 2019): masks, replaces at random, or keeps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tartan.configuration.options import Checked, Fraction, Share
from tartan.errors import UserError
from tartan.objectives.vocabulary import Vocabulary

Drawn = tuple[np.ndarray, np.ndarray]
"""Uniform numbers in [0, 1), and random tokens, `(tokens,)` each."""


@dataclass(frozen=True)
class Corruption(Checked):
    """Replaces a chosen token by the mask token or a random one, or keeps it.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
        masked: share of the chosen tokens that are replaced by the mask token (paper: 0.8).
        random: share of the chosen tokens that are replaced by a random token (paper: 0.1); the
            others are kept.

    Raises:
        UserError: `masked` and `random` sum to more than 1.
    """

    probability: Share = 0.15
    masked: Fraction = 0.8
    random: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masked + self.random > 1:
            raise UserError(
                "masked and random must not sum to more than 1, got "
                f"{self.masked} and {self.random}"
            )

    def draw(self, count: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Drawn:
        """Draw the random numbers for `corrupted`."""
        return rng.random(count), rng.integers(0, vocabulary.size, count)

    def corrupted(
        self, tokens: np.ndarray, chosen: np.ndarray, drawn: Drawn, vocabulary: Vocabulary
    ) -> np.ndarray:
        """Return the tokens with the `chosen` ones, bool, corrupted: all `(tokens,)`."""
        action, replacement = drawn
        masked = chosen & (action < self.masked)
        randomised = chosen & ~masked & (action < self.masked + self.random)
        return np.where(masked, vocabulary.mask_id, np.where(randomised, replacement, tokens))
