"""Finds the examples of a split that nearly duplicate one of another split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from src.data.near_duplicates import near_duplicate_pairs


@dataclass(frozen=True)
class NearDuplicate:
    """An example that nearly duplicates one of another split.

    Attributes:
        split: name of the example's split.
        other: name of the other split.
        index: index of the example in its split.
        other_index: index of the most similar example in the other split.
        similarity: Jaccard similarity of the two texts' word grams, in (0, 1].
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
) -> list[NearDuplicate]:
    """Return the near-duplicates in `own` of texts in `others`, the most similar first."""
    pairs = near_duplicate_pairs(own, others)
    best = {}
    for i in np.lexsort((-pairs.other, pairs.similarity)):  # the last of each is the most similar
        best[int(pairs.own[i])] = (float(pairs.similarity[i]), int(pairs.other[i]))
    found = [
        NearDuplicate(split, other, index, twin, similarity, own[index])
        for index, (similarity, twin) in best.items()
    ]
    return sorted(found, key=lambda near: (-near.similarity, near.index))
