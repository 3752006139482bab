"""Chooses which training examples keep their labels where labels are to be few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sklearn.model_selection import train_test_split

from src.core.seeding import generator_for
from src.data.every_label import with_every_label
from src.errors import UserError


def choose_labelled(labels: Sequence[str], count: int, seed: int, source: str) -> list[bool]:
    """Return for each training example whether it keeps its label; labels keep their shares.

    Each label keeps at least one example: where the draw leaves one out, examples are exchanged.

    Args:
        labels: the labels of all training examples.
        count: number of examples that keep theirs.
        seed: seed of the choice.
        source: path or name of the examples, for messages.

    Raises:
        UserError: there are too few examples for that, or a label has one only.
    """
    counts = Counter(labels)
    if count == len(labels):
        return [True] * count
    if not len(counts) <= count <= len(labels) - len(counts):
        raise UserError(
            f"task.labelled={count} must be at least the {len(counts)} labels and leave as many "
            f"unlabelled of the {len(labels)} training examples of {source}; null keeps all"
        )
    rare, least = min(counts.items(), key=lambda item: (item[1], item[0]))
    if least < 2:
        raise UserError(
            f"{source}: label {rare!r} has one training example only, which task.labelled={count} "
            "cannot both keep and leave out; add examples of it, or merge it"
        )
    drawn, rest = train_test_split(
        range(len(labels)), train_size=count, random_state=seed, stratify=labels
    )
    generator = generator_for(seed, "every label", "labelled")
    kept, _ = with_every_label(labels, drawn, rest, (1, 0), generator)
    chosen = set(kept)
    return [index in chosen for index in range(len(labels))]
