"""Warns of oddities in a user's texts and labels before training, one line for each kind."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal

from tartan.data.labelled import number_of

log = logging.getLogger(__name__)

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
    counts = {
        "have a blank text": {s: sum(map(_is_blank, own)) for s, own in texts.items()},
        "repeat a text of their own split": {s: len(own) - len({*own}) for s, own in texts.items()},
        "have a text of train (metrics are given without them as well)": {
            s: sum(text in known for text in own) for s, own in texts.items() if s != "train"
        },
    }
    for what, by_split in counts.items():
        found = [f"{n:,} of {len(texts[s]):,} in {s}" for s, n in by_split.items() if n]
        if found:
            log.warning("task %s: examples %s: %s", name, what, ", ".join(found))
    for split, own in labels.items():
        if own and (absent := labels["train"] - own):
            log.warning("task %s: no examples in %s of %s", name, split, _names(sorted(absent)))
    if missing := {label for label in labels["train"] if label.strip().casefold() in _NOTHING}:
        log.warning("task %s: labels that may mean a missing one: %s", name, _names(missing))
    for alike in _alike_labels(labels["train"]):
        log.warning(
            "task %s: labels that differ in case, spaces, Unicode form or the spelling of a number "
            "only: %s", name, _names(alike),
        )  # fmt: skip


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
    common = sorted(zip(counts, labels, strict=True), key=lambda entry: (-entry[0], entry[1]))
    shares = [f"{label!r} {count / sum(counts):.1%}" for count, label in common]
    if len(shares) > _SHOWN:
        half = _SHOWN // 2
        shares = [*shares[:half], f"... ({len(shares) - _SHOWN} more)", *shares[-half:]]
    log.warning(
        "task %s: labels are uneven in train: %s; %s makes each label count alike in the loss",
        name, ", ".join(shares), option,
    )  # fmt: skip


def _names(labels: Iterable[str]) -> str:
    """Return labels in quotes, so that spaces in them are seen; of many, the first."""
    names = sorted(labels)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def _is_blank(text: Hashable) -> bool:
    parts = text if isinstance(text, tuple) else (text,)
    return not any(str(part).strip() for part in parts)


def _alike_labels(labels: Set[str]) -> list[list[str]]:
    by_form: dict[str | Decimal, list[str]] = {}
    for label in labels:
        form = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
        number = number_of(form)
        by_form.setdefault(form if number is None else number, []).append(label)
    return [own for own in by_form.values() if len(own) > 1]
