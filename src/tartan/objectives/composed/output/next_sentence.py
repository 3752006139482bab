"""Output that predicts whether one segment follows the other (BERT, Devlin et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tartan.objectives.base import Row
from tartan.objectives.composed.output.relation import Relation
from tartan.objectives.composed.output.segments import join_segments, split_segments
from tartan.objectives.vocabulary import Vocabulary


class NextSentence(Relation):
    """Predicts whether a text's second segment is its own (1) or another text's (0).

    With probability 1/2 it is replaced by the second segment of an earlier text in the batch, if
    that has one.
    """

    def arrange(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        first, second = split_segments(rows[index], vocabulary)
        coin, other = rng.random(2)
        foreign = second[:0]
        if coin < 0.5:
            _, foreign = split_segments(rows[int(other * index)], vocabulary)
        follows = index == 0 or len(foreign) == 0
        return join_segments(rows[index], first, second if follows else foreign, int(follows))
