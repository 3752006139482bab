"""Base of input transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tartan.configuration.options import Checked, Share
from tartan.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class Transform(Checked, ABC):
    """Changes chosen tokens of a text, which an output may predict.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
    """

    probability: Share = 0.15

    @abstractmethod
    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return the tokens with the chosen ones changed, `(tokens,)`.

        Args:
            tokens: token ids of a text, special ones included, `(tokens,)`; not to be modified.
            chosen: True where a token may be changed, bool `(tokens,)`.
            vocabulary: the encoder's vocabulary.
            rng: the only source of randomness.
        """
