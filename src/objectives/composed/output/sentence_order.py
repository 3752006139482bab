"""The order of a text's two halves (ALBERT, Lan et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from src.objectives.base import Row
from src.objectives.composed.output.relation import Relation
from src.objectives.composed.output.segments import joined, segments
from src.objectives.vocabulary import Vocabulary


class SentenceOrder(Relation):
    """Predict whether a text's two segments, exchanged with probability 1/2, are in order."""

    def arranged(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        first, second = segments(rows[index], vocabulary)
        in_order = rng.random() < 0.5
        if not in_order:
            first, second = second, first
        return joined(rows[index], first, second, int(in_order))
