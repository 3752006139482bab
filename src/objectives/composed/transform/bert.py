"""BERT's corruption (Devlin et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from src.configuration.options import Fraction
from src.objectives.composed.transform.base import Transform
from src.objectives.corruption import check_shares, corrupted, draw_corruption
from src.objectives.vocabulary import Vocabulary


@dataclass(frozen=True)
class Bert(Transform):
    """A chosen token becomes the mask token, a random one, or stays.

    Attributes:
        masked: share of the chosen that become the mask token (0.8).
        random: share that become a random token (0.1); the rest stays.
    """

    masked: Fraction = 0.8
    random: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self.masked, self.random)

    def corrupted(
        self,
        tokens: np.ndarray,
        chosen: np.ndarray,
        vocabulary: Vocabulary,
        rng: np.random.Generator,
    ) -> np.ndarray:
        drawn = draw_corruption(len(tokens), vocabulary, rng)
        return corrupted(tokens, chosen, drawn, (self.masked, self.random), vocabulary.mask_id)
