"""Transform that masks tokens."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.vocabulary import Vocabulary


class Mask(Transform):
    """Replaces every chosen token by the mask token."""

    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return np.where(chosen, vocabulary.mask_id, tokens)
