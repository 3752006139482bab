"""Finds the examples of a split that nearly duplicate one of another split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from src.data.near_duplicates import nearest_duplicates


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
        number: the line or row of the example in its file; None where it is not known.
        other_number: that of the most similar example.
    """

    split: str
    other: str
    index: int
    other_index: int
    similarity: float
    text: str
    number: int | None = None
    other_number: int | None = None


def near_duplicates(
    split: str, own: Sequence[str], other: str, others: Sequence[str]
) -> list[NearDuplicate]:
    """Return the near-duplicates in `own` of texts in `others`, the most similar first."""
    nearest = nearest_duplicates(own, others)
    found = [
        NearDuplicate(split, other, int(index), int(twin), float(similarity), own[index])
        for index, twin, similarity in zip(
            nearest.own, nearest.other, nearest.similarity, strict=True
        )
    ]
    return sorted(found, key=lambda near: (-near.similarity, near.index))
