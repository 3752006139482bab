"""Backward representation, in which each position attends to itself and those after it."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.representation.base import Representation, View


class RightToLeft(Representation):
    """Predicts a token at the position after it, as a backward language model does."""

    sees_both_sides = False
    restricts_attention = True

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        return View(read_at=predicted + 1, pair_mask=np.tri(length, dtype=bool).T)
