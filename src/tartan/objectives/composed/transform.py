"""Input transforms, which change chosen tokens of a text before the body reads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tartan.objectives.masked_lm import Corruption, Rng, Vocabulary
from tartan.settings import Checked, Share


@dataclass(frozen=True)
class Transform(Checked, ABC):
    """Changes chosen tokens of a text, which an output may predict.

    Attributes:
        probability: share of the tokens that are chosen (paper: 0.15).
    """

    probability: Share = 0.15

    @abstractmethod
    def corrupt(
        self, tokens: np.ndarray, chosen: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> np.ndarray:
        """Return a copy of the tokens with the `chosen` ones, bool, changed: all `(tokens,)`."""


class Unchanged(Transform):
    """Keeps every token; the chosen ones are only predicted, as in language modelling."""

    def corrupt(
        self, tokens: np.ndarray, chosen: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> np.ndarray:
        return tokens


class Mask(Transform):
    """Replaces every chosen token by the mask token."""

    def corrupt(
        self, tokens: np.ndarray, chosen: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> np.ndarray:
        return np.where(chosen, vocabulary.mask_id, tokens)


class Replace(Transform):
    """Replaces every chosen token by one that is drawn uniformly from the vocabulary."""

    def corrupt(
        self, tokens: np.ndarray, chosen: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> np.ndarray:
        return np.where(chosen, rng.integers(0, vocabulary.size, len(tokens)), tokens)


class Bert(Corruption, Transform):
    """Replaces a chosen token by the mask token or a random one, or keeps it."""

    def corrupt(
        self, tokens: np.ndarray, chosen: np.ndarray, vocabulary: Vocabulary, rng: Rng
    ) -> np.ndarray:
        return self.corrupted(tokens, chosen, self.draw(len(tokens), vocabulary, rng), vocabulary)
