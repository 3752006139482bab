"""Splits dev and test examples off the training examples where a task has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sklearn.model_selection import train_test_split

from src.core.seeding import generator_for
from src.data.every_label import with_every_label
from src.data.labelled import number_of
from src.data.remarks import alike_labels
from src.errors import UserError

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
        rest, drawn = train_test_split(
            left, test_size=size, random_state=part.seed, stratify=[labels[i] for i in left]
        )
        enough = (1, len(parts) - number)  # of what is left, for train and each part to come
        generator = generator_for(part.seed, "every label", part.split)
        taken, left = with_every_label(labels, drawn, rest, enough, generator)
        left.sort()
        for index in taken:
            splits[index] = part.split
    return splits


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
