"""Bidirectional representation, in which each position attends to all."""

from __future__ import annotations

import numpy as np

from tartan.objectives.composed.representation.base import Representation, View


class Bidirectional(Representation):
    """Predicts a token at its own position, as BERT does, which sees the transformed token."""

    sees_both_sides = True
    restricts_attention = False

    def view(self, length: int, predicted: np.ndarray, rng: np.random.Generator) -> View:
        return View(read_at=predicted)
