"""Counts of examples by label and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Counts:
    """Examples of each label in each split.

    Attributes:
        labels: their names.
        splits: examples of each label, in the order of `labels`, by split.
    """

    labels: tuple[str, ...]
    splits: dict[str, list[int]]

    def of(self, split: str) -> int:
        """Examples of a split."""
        return sum(self.splits[split])

    def rarest(self, split: str) -> tuple[str, int]:
        """The label with the fewest examples in a split, and how many."""
        index = int(np.argmin(self.splits[split]))
        return self.labels[index], self.splits[split][index]

    def most(self, split: str) -> tuple[str, int]:
        """The label with the most examples in a split, and how many."""
        index = int(np.argmax(self.splits[split]))
        return self.labels[index], self.splits[split][index]

    @property
    def imbalance(self) -> float:
        """Training examples of the most frequent label for one of the rarest."""
        return self.most("train")[1] / self.rarest("train")[1]

    def frame(self) -> pd.DataFrame:
        """Labels by splits, the most frequent in train first."""
        frame = pd.DataFrame(self.splits, index=list(self.labels))
        return frame.sort_values("train", ascending=False, kind="stable")


def count_labels(labels: Sequence[str], splits: Mapping[str, np.ndarray]) -> Counts:
    """Count.

    Args:
        labels: their names in index order.
        splits: label indices `(examples,)` of each split.
    """
    counted = {
        name: np.bincount(indices, minlength=len(labels)).tolist()
        for name, indices in splits.items()
    }
    return Counts(tuple(labels), counted)
