"""Records which rows of a file became train, dev and test where they were split off it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from src.data.labelled import Example
from src.data.stratified import HeldOut


@dataclass(frozen=True)
class Assignment:
    """The rows of the training file and their splits.

    Attributes:
        source: the file's name.
        unit: what `Example.number` counts: `line` or `row`.
        parts: how dev and test were chosen, for those that were split off.
        rows: the split and the example of each row, in the file's order.
    """

    source: str
    unit: str
    parts: Sequence[HeldOut]
    rows: Sequence[tuple[str, Example]]

    def summary(self) -> dict[str, Any]:
        """Return `result.json`'s entry: how splits were chosen, and their rows, e.g. `2-4, 7`."""
        counts = Counter(split for split, _ in self.rows)
        return {
            "source": self.source,
            "train": {"examples": counts["train"]},
            **{
                part.split: {
                    "share": part.share,
                    "seed": part.seed,
                    "examples": counts[part.split],
                    f"{self.unit}s": ranges(
                        [example.number for split, example in self.rows if split == part.split]
                    ),
                }
                for part in self.parts
            },
        }


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers in short form, e.g. `2-4, 7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
