"""Transform that keeps all tokens."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.transform.base import Transform
from tartan.objectives.vocabulary import Vocabulary


class Unchanged(Transform):
    """Keeps every token; the chosen ones are only predicted, as in language modelling."""

    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return tokens
