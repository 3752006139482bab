"""Chosen tokens become random ones."""

from __future__ import annotations

import numpy as np

from src.objectives.composed.transform.base import Transform
from src.objectives.vocabulary import Vocabulary


class Replace(Transform):
    """Every chosen token is replaced by one drawn uniformly from the vocabulary."""

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return np.where(chosen, rng.integers(0, vocabulary.size, len(tokens)), tokens)
