"""The base of input transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from src.configuration.options import Checked, Share
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class Transform(Checked, ABC):
    """Changes the chosen tokens of a text; those are the ones that an output may predict.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
    """

    probability: Share = 0.15

    @abstractmethod
    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The tokens as the body sees them, `(tokens,)`; those that are not chosen stay.

        Args:
            tokens: of one text, special ones included, `(tokens,)`; not to be changed.
            chosen: which of them to change, bool `(tokens,)`.
            rng: the only source of randomness.
        """
