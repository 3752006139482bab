"""Chosen tokens become the mask token."""

from __future__ import annotations

import numpy as np

from src.objectives.composed.transform.base import Transform
from src.objectives.vocabulary import Vocabulary


class Mask(Transform):
    """Every chosen token is replaced by the mask token."""

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return np.where(chosen, vocabulary.mask_id, tokens)
