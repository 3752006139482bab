"""Output that predicts the order of two segments (ALBERT, Lan et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tartan.objectives.base import Row
from tartan.objectives.composed.output.relation import Relation
from tartan.objectives.composed.output.segments import join_segments, split_segments
from tartan.objectives.vocabulary import Vocabulary


class SentenceOrder(Relation):
    """Predicts whether a text's segments, swapped with probability 1/2, are in order (1) or not."""

    def arrange(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        first, second = split_segments(rows[index], vocabulary)
        in_order = rng.random() < 0.5
        if not in_order:
            first, second = second, first
        return join_segments(rows[index], first, second, int(in_order))
