"""Transform that corrupts tokens as BERT does (Devlin et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.configuration.options import Fraction
from src.objectives.composed.transform.base import Transform
from src.objectives.corruption import check_shares, corrupt, draw_corruption
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class Bert(Transform):
    """Replaces a chosen token by the mask token or a random one, or keeps it.

    Attributes:
        masked: share of the chosen tokens that are replaced by the mask token (paper: 0.8).
        random: share of the chosen tokens that are replaced by a random token (paper: 0.1); the
            others are kept.
    """

    masked: Fraction = 0.8
    random: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self.masked, self.random)

    def corrupt(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        drawn = draw_corruption(len(tokens), vocabulary, rng)
        return corrupt(tokens, chosen, drawn, (self.masked, self.random), vocabulary.mask_id)
