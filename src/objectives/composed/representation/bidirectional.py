"""Every position sees every other, itself included."""

from __future__ import annotations

import numpy as np

from src.objectives.composed.representation.base import Representation, View


class Bidirectional(Representation):
    """BERT's: a token is predicted at its own position, from what the transform put there."""

    both_sides = True
    hides = False
    restricts = False

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        return View(read_at=predicted)
