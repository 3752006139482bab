"""Finds the labelled texts that occur more than once or are blank, and where they stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tartan.data.decontaminate import folded
from tartan.data.text_task import LabelledTexts


@dataclass(frozen=True)
class Place:
    """A place at which a text stands.

    Attributes:
        split: name of the split.
        number: line or row in its file; None where that is not known.
        index: index of the example in its split.
        label: the label's name.
    """

    split: str
    number: int | None
    index: int
    label: str

    def __str__(self) -> str:
        counted = f"example {self.index + 1}" if self.number is None else f"line {self.number}"
        return f"{counted} ({self.split}, {self.label})"


@dataclass(frozen=True)
class SameText:
    """A text that occurs more than once, regardless of case and white space, or is blank.

    Attributes:
        text: the text as it first occurs.
        places: all its places, in the order of the splits.
    """

    text: str
    places: tuple[Place, ...]

    @property
    def contradictory(self) -> bool:
        """Whether the text has several labels."""
        return len({place.label for place in self.places}) > 1


def same_texts(splits: Mapping[str, LabelledTexts], labels: Sequence[str]) -> list[SameText]:
    """Return the texts that occur more than once or are blank, those with several labels first.

    Args:
        splits: the examples by split; the texts of pairs are taken as one.
        labels: label names in index order.
    """
    places: dict[str, list[Place]] = defaultdict(list)
    first: dict[str, str] = {}
    for split, examples in splits.items():
        unknown: list[int | None] = [None] * len(examples)
        numbers = examples.numbers or unknown
        for index, text in enumerate(examples.whole):
            content = folded(text)
            first.setdefault(content, text)
            label = labels[examples.labels[index]]
            places[content].append(Place(split, numbers[index], index, label))
    found = [
        SameText(first[content], tuple(own))
        for content, own in places.items()
        if len(own) > 1 or not content
    ]
    return sorted(found, key=lambda same: (not same.contradictory, bool(same.text.strip())))
