"""Splits a task anew such that equal and near-duplicate texts are never in two splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tartan.core.seeding import generator_for
from tartan.data.near_duplicates import near_duplicate_groups
from tartan.data.overlap import words_of
from tartan.errors import UserError


def same_texts(texts: Sequence[str]) -> np.ndarray:
    """Return the index of the group that each text belongs to, int `(texts,)`.

    Two texts are in one group if they are equal regardless of case, white space and punctuation, if
    they are near-duplicates, or if a chain of such pairs joins them.
    """
    plain = [" ".join(words_of(text)) for text in texts]
    first: dict[str, int] = {}  # equal texts of few words are not near-duplicates
    near = near_duplicate_groups(texts).tolist()
    return np.array([first.setdefault(*pair) for pair in zip(plain, near, strict=True)])


def clean_split(
    groups: Sequence[int], labels: Sequence[str], sizes: Mapping[str, int], seed: int, name: str
) -> list[str]:
    """Return the split of each example: no group is in two splits, and labels keep their shares.

    Groups are taken in random order. Test and dev take a group as long as none of its labels then
    has more than its share there; train takes the others, and so most of the large groups. Labels'
    shares are rounded; where they then come to more than the size, or to less than 99 % of it, they
    are those of the largest remainders instead.

    Args:
        groups: the group of each example.
        labels: the label of each example.
        sizes: number of examples that `train`, `dev` and `test` should have; dev and test have at
            most that many. 0 for a split that the task does without.
        seed: seed of the random order.
        name: the task's name, for messages.

    Raises:
        UserError: train would lack a label, or dev or test would be empty.
    """
    counts, total = Counter(labels), len(labels)
    free: dict[str, Counter[str]] = {}
    for split in ("test", "dev"):
        if not sizes[split]:
            continue  # a task without a test split
        order = generator_for(seed, "clean split", split).permutation(sorted(counts)).tolist()
        free[split] = _shares(counts - sum(free.values(), Counter()), counts, sizes[split], order)
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    found = ["train"] * total
    parts = list(members.values())
    for place in generator_for(seed, "clean split").permutation(len(parts)):
        own = Counter(labels[index] for index in parts[place])
        for split, left in free.items():
            if all(left[label] >= number for label, number in own.items()):
                for label, number in own.items():
                    left[label] -= number
                for index in parts[place]:
                    found[index] = split
                break
    missing = counts.keys() - {
        label for label, own in zip(labels, found, strict=True) if own == "train"
    }
    if missing:
        raise UserError(
            f"task {name} cannot be split anew: train would have no example of "
            f"{', '.join(sorted(missing))}; use task.split=published, or another task.split_seed"
        )
    for split in free:
        if split not in found:
            raise UserError(
                f"task {name} cannot be split anew: {split} would be empty, because every text has "
                f"too many equal and near-duplicate ones for a split of {sizes[split]} examples; "
                "use task.split=published, or another task.split_seed"
            )
    return found


def _shares(
    left: Mapping[str, int], counts: Mapping[str, int], size: int, order: Sequence[str]
) -> Counter[str]:
    """Return how many examples of each label a split of `size` may have.

    Args:
        left: number of each label's examples that no other split may have.
        counts: number of each label's examples.
        size: number of examples that the split should have.
        order: the labels, of which the first are preferred where remainders are equal.
    """
    total = sum(counts.values())
    shares = Counter({label: round(count * size / total) for label, count in counts.items()})
    # nearly all is enough: the splits that docs/results.md is about stay what they were
    if 0 <= size - shares.total() <= size // 100:
        return shares
    shares = Counter({label: count * size // total for label, count in counts.items()})
    for label in sorted(order, key=lambda label: -(counts[label] * size % total)):
        if shares.total() < size and shares[label] + 1 < left[label]:  # one is for train
            shares[label] += 1
    return shares
