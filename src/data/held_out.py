"""Splitting validation examples off the training ones where none are given."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sklearn.model_selection import train_test_split

from src.errors import UserError

Labelled = list[tuple[str, str]]


@dataclass(frozen=True)
class HeldOut:
    """Which part of the training examples becomes the dev split; every label keeps its share.

    Attributes:
        share: of the training examples.
        seed: of the choice, which is the same for all runs unless changed.
    """

    share: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"task.dev_share must be between 0 and 1, got {self.share}")
        if self.seed < 0:
            raise UserError(f"task.split_seed must be at least 0, got {self.seed}")

    def split(self, examples: Labelled, path: Path) -> tuple[Labelled, Labelled]:
        """`(train, dev)`, each in the file's order.

        Raises:
            UserError: a label has too few examples to be in both.
        """
        counts = Counter(label for _, label in examples)
        label, least = min(counts.items(), key=lambda item: (item[1], item[0]))
        if least < 2:
            raise UserError(
                f"{path}: label {label!r} has one example only, which cannot be in train and in "
                "dev; add examples of it, or name a dev file: task.dev=FILE"
            )
        held = round(self.share * len(examples))
        if min(held, len(examples) - held) < len(counts):
            raise UserError(
                f"task.dev_share={self.share} of the {len(examples)} examples of {path} leaves "
                f"train or dev with fewer than its {len(counts)} labels; change it, or name a dev "
                "file: task.dev=FILE"
            )
        labels = [label for _, label in examples]
        kept, dev = train_test_split(
            range(len(examples)), test_size=held, random_state=self.seed, stratify=labels
        )
        return [examples[i] for i in sorted(kept)], [examples[i] for i in sorted(dev)]
