"""Near-duplicates: texts of a split that differ little from one of another split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from src.data.near_duplicates import near_duplicate_pairs


@dataclass(frozen=True)
class Near:
    """An example that differs little from one of another split.

    Attributes:
        split: whose example it is.
        other: where the other is.
        index: of the example in its split, from 0.
        other_index: of the most similar one.
        similarity: the grams both have as a share of those that either has (Jaccard), in (0, 1].
        text: the example's text.
    """

    split: str
    other: str
    index: int
    other_index: int
    similarity: float
    text: str


def near_duplicates(
    split: str, own: Sequence[str], other: str, others: Sequence[str]
) -> list[Near]:
    """The examples of `own` that are near-duplicates of one of `others`, the most similar first."""
    pairs = near_duplicate_pairs(own, others)
    best = {}
    for i in np.lexsort((-pairs.other, pairs.similarity)):  # the last of each is the most similar
        best[int(pairs.own[i])] = (float(pairs.similarity[i]), int(pairs.other[i]))
    found = [
        Near(split, other, index, twin, similarity, own[index])
        for index, (similarity, twin) in best.items()
    ]
    return sorted(found, key=lambda near: (-near.similarity, near.index))
