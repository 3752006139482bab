"""Splits labelled examples at random: stratified by label, or so that no text is in two splits."""

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from tartan.core.seeding import generator_for
from tartan.errors import UserError

log = logging.getLogger(__name__)


def stratified_splits(
    labels: Sequence[str], shares: Mapping[str, float], seed: int, source: str
) -> list[str]:
    """Return the split of each example, stratified by label; `train` for those in no other.

    `shares` are those of all examples that become `test`, `dev` or both, drawn one after the other;
    0 is for a split that the task does without. Every split has at least one of each label, but
    those of a label with fewer examples than there are splits are all in train.
    """
    splits, counts = ["train"] * len(labels), Counter(labels)
    shares = {split: share for split, share in shares.items() if share}
    rare = [label for label, count in sorted(counts.items()) if count <= len(shares)]
    common = len(counts) - len(rare)
    sizes = {s: max(round(x * len(labels)), common) for s, x in shares.items()}
    left = [index for index, label in enumerate(labels) if label not in rare]
    options, listed = " and ".join(f"task.{s}" for s in sizes), ", ".join(map(repr, rare))
    if common < min(2, len(counts)):
        raise UserError(f"{source}: too few examples of {listed} for train and {options}")
    if len(left) - sum(sizes.values()) < common:
        raise UserError(f"{source}: too few examples are left for train beside {options}")
    if rare:
        log.warning("%s: too few examples of %s for %s; train has them", source, listed, options)
    for number, (split, size) in enumerate(sizes.items()):
        least = (1, len(sizes) - number)  # of what is left, for train and each split to come
        taken, left = _drawn(labels, left, size, least, (seed, split))
        left.sort()
        for index in taken:
            splits[index] = split
    return splits


def choose_labelled(labels: Sequence[str], count: int, seed: int, source: str) -> list[bool]:
    """Return which examples are the `count` that keep their labels: of each its share, or one."""
    counts = Counter(labels)
    if count == len(labels):
        return [True] * count
    if not len(counts) <= count <= len(labels) - len(counts) or min(counts.values()) < 2:
        raise UserError(
            f"task.labelled={count}: of {len(labels)} examples of {source}, each label has to keep "
            "one and leave one out"
        )
    every = range(len(labels))
    others = {*_drawn(labels, every, len(labels) - count, (0, 1), (seed, "labelled"))[0]}
    return [index not in others for index in every]


def _drawn(
    labels: Sequence[str],
    left: Sequence[int],
    size: int,
    least: tuple[int, int],
    seed: tuple[int, str],
) -> tuple[list[int], list[int]]:
    """Return `size` of the examples `left` and the others (see `with_every_label`)."""
    rest, drawn = train_test_split(
        left, test_size=size, random_state=seed[0], stratify=[labels[i] for i in left]
    )
    generator = generator_for(seed[0], "every label", seed[1])
    return with_every_label(labels, drawn, rest, least, generator)


def with_every_label(
    labels: Sequence[str],
    taken: Sequence[int],
    left: Sequence[int],
    least: tuple[int, int],
    generator: np.random.Generator,
) -> tuple[list[int], list[int]]:
    """Return two parts of the same sizes, each with at least so many examples of every label.

    Where some lack, random examples are exchanged for ones of the label of which the part has most.
    """
    parts = (list(taken), list(left))
    counts = tuple(Counter(labels[index] for index in part) for part in parts)
    for label in sorted(counts[0].keys() | counts[1].keys()):
        for one, other in ((0, 1), (1, 0)):
            while counts[one][label] < least[one]:
                often = max(sorted(counts[one]), key=counts[one].__getitem__)
                for giver, receiver, moved in ((other, one, label), (one, other, often)):
                    choice = [index for index in parts[giver] if labels[index] == moved]
                    chosen = choice[generator.integers(len(choice))]
                    parts[giver].remove(chosen)
                    parts[receiver].append(chosen)
                    counts[giver][moved] -= 1
                    counts[receiver][moved] += 1
    return parts


def clean_split(
    groups: Sequence[int], labels: Sequence[str], sizes: Mapping[str, int], seed: int, name: str
) -> list[str]:
    """Return the split of each example: no group is in two splits, and labels keep their shares.

    In random order, test and dev take groups until their labels have their shares of `sizes`.
    """
    counts = Counter(labels)
    free: dict[str, Counter[str]] = {}
    for split in ("test", "dev"):
        if sizes[split]:
            order = generator_for(seed, "clean split", split).permutation(sorted(counts)).tolist()
            left = counts - sum(free.values(), Counter())
            free[split] = _shares(left, counts, sizes[split], order)
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    splits = ["train"] * len(labels)
    parts = list(members.values())
    for place in generator_for(seed, "clean split").permutation(len(parts)):
        needed = Counter(labels[index] for index in parts[place])
        for split, room in free.items():
            if needed <= room:
                room.subtract(needed)
                for index in parts[place]:
                    splits[index] = split
                break
    trained = {label for label, split in zip(labels, splits, strict=True) if split == "train"}
    if trained != counts.keys() or not free.keys() <= {*splits}:
        raise UserError(f"task {name} cannot be split anew; use another task.split_seed")
    return splits


def _shares(
    left: Mapping[str, int], counts: Mapping[str, int], size: int, order: Sequence[str]
) -> Counter[str]:
    """Return how many of the `counts` examples of each label a split of `size` may have.

    Shares are rounded, or where these do not nearly come to the size, the largest remainders are.
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


def iterative_split(
    labels: Sequence[Collection[str]],
    groups: Sequence[int],
    sizes: Sequence[int],
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the part of each example, such that each of its labels has its share in every part.

    By iterative stratification (Sechidis et al., 2011): of the label with the fewest examples left,
    each goes to the part that lacks most of that label. A group stays together. Parts have their
    `sizes`, as nearly as groups allow.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for example, group in enumerate(groups):
        members[group].append(example)
    order = [members[group] for group in generator.permutation(sorted(members))]
    names = sorted(set(chain(*labels)))
    counts = np.array([[sum(n in labels[i] for i in group) for n in names] for group in order])
    room = np.array(sizes, dtype=float)
    lacking = np.outer(room / room.sum(), counts.sum(axis=0))  # (parts, labels)
    parts, left = np.zeros(len(labels), dtype=np.int64), np.ones(len(order), dtype=bool)
    while left.any():
        totals = counts[left].sum(axis=0)
        rarest = int(np.where(totals > 0, totals, np.inf).argmin()) if totals.any() else None
        has = left if rarest is None else left & (counts[:, rarest] > 0)
        for place in np.flatnonzero(has):
            size = len(order[place])
            wants = room if rarest is None else lacking[:, rarest]
            part = max(range(len(room)), key=lambda p: (room[p] >= size, wants[p], room[p]))
            parts[order[place]] = part
            room[part] -= size
            lacking[part] -= counts[place]
        left &= ~has
    return parts
