"""Warns of oddities in a user's texts and labels before training, one line for each kind."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Hashable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Literal, TypeAlias

from tartan.data.labelled import number_of
from tartan.data.tokenise import Truncation

log = logging.getLogger(__name__)

Kind: TypeAlias = Literal[
    "blank", "repeated", "shared", "absent", "alike", "missing", "imbalance", "truncation",
    "in_corpus",
]  # fmt: skip
"""What a warning is about; its log record has it as `kind`."""

_SHOWN = 8
"""Maximum number of labels that a warning names."""
_NOTHING = {"nan", "null", "none", "na", "n/a", "<na>", "nil"}
"""Labels, in lower case, by which programs write missing values."""
UNEVEN = 3
"""Least ratio of the most frequent label's examples to the rarest's that is warned of.

ACL-ARC's ratio is 14, and the paper reports macro-F1 for it.
"""


def warn_of_texts(
    name: str,
    splits: Mapping[str, Sequence[tuple[Hashable, str]]],
    unlabelled: Set[Hashable] = frozenset(),
) -> None:
    """Log what is odd about a task's labelled texts, one line for each kind of oddity.

    Args:
        name: the task's name.
        splits: `(text, label)` of each example of `train`, `dev` and `test`; the text of a pair is
            a tuple of both.
        unlabelled: further texts of train, without a label.
    """
    texts = {split: [text for text, _ in examples] for split, examples in splits.items()}
    labels = {split: {label for _, label in examples} for split, examples in splits.items()}
    known = {*texts["train"], *unlabelled}
    blank = {split: sum(map(_is_blank, own)) for split, own in texts.items()}
    repeated = {split: len(own) - len(set(own)) for split, own in texts.items()}
    shared = {s: sum(t in known for t in own) for s, own in texts.items() if s != "train"}
    absent = {split: sorted(labels["train"] - own) for split, own in labels.items() if own}
    gone = [f"{names_of(own)} in {split}" for split, own in absent.items() if own]
    missing = sorted(own for own in labels["train"] if own.strip().casefold() in _NOTHING)
    remarks: dict[Kind, str | None] = {
        "blank": _listed(
            "examples have a blank text: %s; fill them in, or remove them", blank, texts
        ),
        "repeated": _listed("examples repeat a text of their own split: %s", repeated, texts),
        "shared": _listed(
            "texts that train has too: %s (metrics are given without them as well)", shared, texts
        ),
        "absent": f"no examples of some labels of train: {'; '.join(gone)}" if gone else None,
        "alike": alike_labels(labels["train"]),
        "missing": f"labels that may stand for a missing one: {', '.join(map(repr, missing))}"
        if missing
        else None,
    }
    for kind, remark in remarks.items():
        if remark is not None:
            warn(kind, "task %s: %s", name, remark)


def names_of(labels: Sequence[str]) -> str:
    """Return labels in quotes, so that spaces in them are seen; of many, the first."""
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(map(repr, labels[:_SHOWN])) + more


def warn_of_imbalance(
    name: str,
    labels: Sequence[str],
    counts: Sequence[int],
    option: str = "classifier.class_weights=balanced",
) -> None:
    """Log the labels' shares of the training examples where they differ greatly.

    Args:
        name: the task's name.
        labels: label names.
        counts: number of training examples of each label.
        option: what makes them count alike, for the message.
    """
    if max(counts) < UNEVEN * min(counts):
        return
    total_count = sum(counts)
    common = sorted(zip(counts, labels, strict=True), key=lambda entry: (-entry[0], entry[1]))
    shares = [f"{label!r} {count / total_count:.1%}" for count, label in common]
    if len(shares) > _SHOWN:
        half = _SHOWN // 2
        shares = [*shares[:half], f"... ({len(shares) - _SHOWN} more)", *shares[-half:]]
    warn(
        "imbalance",
        "task %s: labels are uneven in train: %s; %s makes each label count alike in the loss",
        name,
        ", ".join(shares),
        option,
    )


def warn_of_truncation(name: str, limit: str, splits: Mapping[str, Truncation]) -> None:
    """Log how many of a task's texts and tokens are cut off; nothing where no text was cut.

    Args:
        name: the task's name.
        limit: the maximum length, as its option is written.
        splits: what was cut off, by split.
    """
    found = {split: cuts for split, cuts in splits.items() if cuts.cut}
    if found:
        warn(
            "truncation",
            "task %s: texts were cut at %s: %s",
            name,
            limit,
            "; ".join(
                f"{c.cut:,} of {c.texts:,} in {split}, {c.lost / c.tokens:.1%} of its tokens lost"
                for split, c in found.items()
            ),
        )


def warn(kind: Kind, message: str, *arguments: object) -> None:
    """Log a warning; its record tells the kind."""
    log.warning(message, *arguments, extra={"kind": kind})


def _is_blank(text: Hashable) -> bool:
    parts = text if isinstance(text, tuple) else (text,)
    return not any(str(part).strip() for part in parts)


def _listed(
    form: str, counts: Mapping[str, int], texts: Mapping[str, Sequence[Hashable]]
) -> str | None:
    found = [f"{n:,} of {len(texts[split]):,} in {split}" for split, n in counts.items() if n]
    return form % ", ".join(found) if found else None


def alike_labels(labels: set[str]) -> str | None:
    """Return a warning of labels that differ only in case, spaces, Unicode form or digits."""
    by_form: dict[str | Decimal, list[str]] = {}
    for label in sorted(labels):
        form = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
        number = number_of(form)
        by_form.setdefault(form if number is None else number, []).append(label)
    found = [" and ".join(map(repr, own)) for own in by_form.values() if len(own) > 1]
    if not found:
        return None
    return (
        "labels differ in case, spaces, Unicode form or the spelling of a number only: "
        f"{'; '.join(found)}"
    )
