"""Whether a segment follows the other in its text (BERT, Devlin et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from src.objectives.base import Row
from src.objectives.composed.output.relation import Relation
from src.objectives.composed.output.segments import joined, segments
from src.objectives.vocabulary import Vocabulary


class NextSentence(Relation):
    """Predict whether a text's second segment is its own.

    With probability 1/2 it is that of a text before it in the batch, if there is one that has two.
    """

    def arranged(
        self, rows: Sequence[Row], index: int, vocabulary: Vocabulary, rng: np.random.Generator
    ) -> Row:
        first, second = segments(rows[index], vocabulary)
        coin, other = rng.random(2)
        foreign = segments(rows[int(other * index)], vocabulary)[1] if coin < 0.5 else second[:0]
        follows = index == 0 or len(foreign) == 0
        return joined(rows[index], first, second if follows else foreign, int(follows))
