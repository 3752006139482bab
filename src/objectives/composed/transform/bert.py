"""BERT's corruption (Devlin et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.errors import UserError
from src.objectives.composed.transform.base import Transform, Vocabulary


@dataclass(frozen=True)
class Bert(Transform):
    """A chosen token becomes the mask token, a random one, or stays.

    Attributes:
        masked: share of the chosen that become the mask token (0.8).
        random: share that become a random token (0.1); the rest stays.
    """

    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.masked >= 0 and self.random >= 0 and self.masked + self.random <= 1):
            raise UserError(
                "shares of masked and random tokens must not be negative nor sum to more than 1, "
                f"got {self.masked} and {self.random}"
            )

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        action = rng.random(len(tokens))
        replacement = rng.integers(0, vocabulary.size, len(tokens))
        masked = chosen & (action < self.masked)
        randomised = chosen & ~masked & (action < self.masked + self.random)
        return np.where(masked, vocabulary.mask_id, np.where(randomised, replacement, tokens))
