"""Draws parts of the training examples at random, in which every label keeps its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from tartan.core.seeding import generator_for
from tartan.data.labelled import Example, number_of
from tartan.data.remarks import alike_labels
from tartan.errors import UserError

_SHOWN = 5
"""Number of labels that a message names."""
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class HeldOut:
    """A part of the training examples that becomes another split; labels keep their shares.

    Attributes:
        share: the part's share of the training examples; 0 for a split that the task does without.
        seed: seed of the choice.
        split: the split that the part becomes, `dev` or `test`.
    """

    share: float
    seed: int
    split: str = "dev"


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


def stratified_splits(
    labels: Sequence[str], parts: Sequence[HeldOut], source: str, prefix: str = "task."
) -> list[str]:
    """Return the split of each example, stratified by label; `train` for those in no part.

    The parts are drawn one after the other; the share of each is one of all examples, but at least
    as many as there are labels. Every split has at least one example of each label: where a draw
    leaves one out, examples are exchanged.

    Args:
        labels: the labels of all examples.
        parts: at most one for `dev` and one for `test`; one of share 0 gets no examples.
        source: path or name of the examples, for messages.
        prefix: beginning of the options' names, for messages.

    Raises:
        UserError: a label has too few examples to be in every split, or train would be too small.
    """
    splits = ["train"] * len(labels)
    parts = [part for part in parts if part.share]
    if not parts:
        return splits
    counts = Counter(labels)
    rare = {label: count for label, count in sorted(counts.items()) if count <= len(parts)}
    if rare:
        raise _too_few(rare, set(labels), parts, source, prefix)
    sizes = [max(round(part.share * len(labels)), len(counts)) for part in parts]
    if len(labels) - sum(sizes) < len(counts):
        shares = " and ".join(f"{prefix}{part.split}_share={part.share}" for part in parts)
        (last, *_) = sorted(parts, key=lambda part: -part.share)
        raise UserError(
            f"{shares}: of the {len(labels)} examples of {source}, too few are left for "
            f"train: fewer than there are labels ({len(counts)}); lower it, or name a "
            f"{last.split} file: {prefix}{last.split}=FILE"
        )
    left = list(range(len(labels)))
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        least = (1, len(parts) - number)  # of what is left, for train and each part to come
        taken, left = _drawn(labels, left, size, least, part.seed, part.split)
        left.sort()
        for index in taken:
            splits[index] = part.split
    return splits


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
    every = range(len(labels))
    others, _ = _drawn(labels, every, len(labels) - count, (0, 1), seed, "labelled")
    left_out = set(others)
    return [index not in left_out for index in every]


def _drawn(
    labels: Sequence[str],
    left: Sequence[int],
    size: int,
    least: tuple[int, int],
    seed: int,
    purpose: str,
) -> tuple[list[int], list[int]]:
    """Return `size` of the examples `left` and the others (see `with_every_label`)."""
    rest, drawn = train_test_split(
        left, test_size=size, random_state=seed, stratify=[labels[i] for i in left]
    )
    generator = generator_for(seed, "every label", purpose)
    return with_every_label(labels, drawn, rest, least, generator)


def with_every_label(
    labels: Sequence[str],
    taken: Sequence[int],
    left: Sequence[int],
    least: tuple[int, int],
    generator: np.random.Generator,
) -> tuple[list[int], list[int]]:
    """Return two parts of the same sizes, each with at least so many examples of every label.

    Parts that have them are returned as they are. Otherwise random examples of the label are
    exchanged for ones of the label of which the part has most.

    Args:
        labels: the labels of all examples.
        taken: indices of the examples in one part.
        left: indices of those in the other; together they have `sum(least)` of every label.
        least: number of examples of every label that each of the two has at least; each part has at
            least `least` x number of labels examples.
        generator: draws which ones are exchanged.
    """
    parts = (list(taken), list(left))
    counts = tuple(Counter(labels[index] for index in part) for part in parts)
    for label in sorted(counts[0].keys() | counts[1].keys()):
        for own, other in ((0, 1), (1, 0)):
            while counts[own][label] < least[own]:
                often = max(sorted(counts[own]), key=counts[own].__getitem__)
                for giver, receiver, given in ((other, own, label), (own, other, often)):
                    choice = [index for index in parts[giver] if labels[index] == given]
                    chosen = choice[generator.integers(len(choice))]
                    parts[giver].remove(chosen)
                    parts[receiver].append(chosen)
                    counts[giver][given] -= 1
                    counts[receiver][given] += 1
    return parts


def _too_few(
    rare: Mapping[str, int],
    labels: set[str],
    parts: Sequence[HeldOut],
    source: str,
    prefix: str,
) -> UserError:
    names = [part.split for part in parts]
    found = ", ".join(f"{label!r} has {count}" for label, count in list(rare.items())[:_SHOWN])
    more = f" and {len(rare) - _SHOWN} more" if len(rare) > _SHOWN else ""
    files = " and ".join(f"a {name} file: {prefix}{name}=FILE" for name in names)
    advice = f"add examples, remove the rows, merge labels, or name {files}"
    if _are_numbers(rare, labels):
        advice = (
            f"the column of labels looks like numbers, not classes; name another: {prefix}"
            "label=COLUMN, or make classes of the numbers"
        )
    alike = alike_labels(labels)
    return UserError(
        f"{source}: too few examples of {len(rare)} label{'s' if len(rare) > 1 else ''} to be in "
        f"train and in {' and in '.join(names)}, which takes at least {len(parts) + 1} of each: "
        f"{found}{more}; {advice}" + (f" ({alike})" if alike else "")
    )


def _are_numbers(rare: Mapping[str, int], labels: set[str]) -> bool:
    """Return whether labels are rather numbers that were measured: many, and most of them rare."""
    numbers = sum(number_of(label) is not None for label in labels)
    return len(rare) > max(_SHOWN, len(labels) / 2) and numbers >= _NEARLY_ALL * len(labels)
