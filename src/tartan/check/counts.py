"""Counts examples by label and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Counts:
    """Numbers of examples of each label in each split.

    Attributes:
        labels: label names.
        splits: number of examples of each label, in the order of `labels`, by split.
    """

    labels: tuple[str, ...]
    splits: dict[str, list[int]]

    def of(self, split: str) -> int:
        """Return the number of examples in a split."""
        return sum(self.splits[split])

    def rarest(self, split: str) -> tuple[str, int]:
        """Return the label with the fewest examples in a split, and their number."""
        return min(zip(self.labels, self.splits[split], strict=True), key=itemgetter(1))

    def most(self, split: str) -> tuple[str, int]:
        """Return the label with the most examples in a split, and their number."""
        return max(zip(self.labels, self.splits[split], strict=True), key=itemgetter(1))

    def missing(self, split: str) -> tuple[str, ...]:
        """Return the labels of which a split has no example."""
        counted = zip(self.labels, self.splits[split], strict=True)
        return tuple(label for label, count in counted if not count)

    @property
    def imbalance(self) -> float:
        """Ratio of the most frequent label's training examples to the rarest's."""
        return self.most("train")[1] / self.rarest("train")[1]

    def frame(self) -> pd.DataFrame:
        """Return a table of labels by splits, the most frequent label in train first."""
        frame = pd.DataFrame(self.splits, index=list(self.labels))
        return frame.sort_values("train", ascending=False, kind="stable")


def count_labels(labels: Sequence[str], splits: Mapping[str, np.ndarray]) -> Counts:
    """Count the examples of each label in each split.

    Args:
        labels: label names in index order.
        splits: label indices of each split, int `(examples,)`.
    """
    counted = {
        name: np.bincount(indices, minlength=len(labels)).tolist()
        for name, indices in splits.items()
    }
    return Counts(tuple(labels), counted)
