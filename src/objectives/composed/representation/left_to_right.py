"""A position sees itself and those before it."""

from __future__ import annotations

import numpy as np

from src.objectives.composed.representation.base import Representation, View


class LeftToRight(Representation):
    """A language model's: a token is predicted at the position before it."""

    both_sides = False
    hides = True
    restricts = True

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        return View(read_at=predicted - 1, pair_mask=np.tri(length, dtype=bool))
