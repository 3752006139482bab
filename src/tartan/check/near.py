"""Finds the examples of a split that nearly duplicate one of train."""

from __future__ import annotations

from dataclasses import dataclass

from tartan.data.decontaminate import folded
from tartan.data.near_duplicates import nearest_duplicates
from tartan.data.text_task import LabelledTexts


@dataclass(frozen=True)
class NearDuplicate:
    """An example that nearly duplicates one of train.

    Attributes:
        split: name of the example's split.
        index: index of the example in its split.
        other_index: index of the most similar example in train.
        similarity: Jaccard similarity of the two texts' word grams, in (0, 1].
        text: the example's text.
        number: the line or row of the example in its file; None where it is not known.
        other_number: that of the most similar example.
    """

    split: str
    index: int
    other_index: int
    similarity: float
    text: str
    number: int | None
    other_number: int | None


def near_duplicates(split: str, own: LabelledTexts, train: LabelledTexts) -> list[NearDuplicate]:
    """Return the texts that nearly duplicate one of train, the most similar first.

    Those that equal one, regardless of case and white space, are left out.
    """
    texts, others = own.whole, train.whole
    equal = set(map(folded, others))
    nearest = nearest_duplicates(texts, others)
    found = []
    for i, twin, alike in zip(nearest.own, nearest.other, nearest.similarity, strict=True):
        numbers: tuple[int | None, int | None] = (None, None)
        if own.numbers and train.numbers:
            numbers = (own.numbers[i], train.numbers[twin])
        if folded(texts[i]) not in equal:
            near = NearDuplicate(split, int(i), int(twin), float(alike), texts[i], *numbers)
            found.append(near)
    return sorted(found, key=lambda near: (-near.similarity, near.index))
