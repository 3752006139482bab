"""No transform."""

from __future__ import annotations

import numpy as np

from src.objectives.composed.transform.base import Transform
from src.objectives.vocabulary import Vocabulary


class Unchanged(Transform):
    """Every token stays; those chosen are only what is predicted (language modelling)."""

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return tokens
