"""Transform that corrupts tokens as BERT does (Devlin et al., 2019)."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.corruption import Corruption
from tartan.objectives.vocabulary import Vocabulary


class Bert(Corruption, Transform):
    """Replaces a chosen token by the mask token or a random one, or keeps it."""

    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return self.corrupted(tokens, chosen, self.draw(len(tokens), vocabulary, rng), vocabulary)
