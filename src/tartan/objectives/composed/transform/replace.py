"""Transform that replaces tokens by random ones."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.vocabulary import Vocabulary


class Replace(Transform):
    """Replaces every chosen token by one that is drawn uniformly from the vocabulary."""

    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return np.where(chosen, rng.integers(0, vocabulary.size, len(tokens)), tokens)
