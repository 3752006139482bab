"""Warns of oddities in a user's texts and labels before training, one line for each kind."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set

log = logging.getLogger(__name__)

_SHOWN = 8
"""Maximum number of labels that a warning names."""
_NOTHING = {"nan", "null", "none", "na", "n/a", "<na>", "nil"}
"""Labels, in lower case, by which programs write missing values."""
UNEVEN = 3
"""Least ratio of the most frequent label's examples to the rarest's that is warned of."""


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
    trained = {text for text, _ in splits["train"]} | unlabelled
    labels = {split: {label for _, label in examples} for split, examples in splits.items()}
    for split, examples in splits.items():
        texts = [text for text, _ in examples]
        counts = {
            "have a blank text": sum(map(_is_blank, texts)),
            "repeat a text of the same split": len(texts) - len({*texts}),
            "have a text of train (metrics are given without them as well)": (
                0 if split == "train" else sum(text in trained for text in texts)
            ),
        }
        for what, count in counts.items():
            if count:
                log.warning(
                    "task %s: %s of %s examples in %s %s",
                    name, f"{count:,}", f"{len(texts):,}", split, what,
                )  # fmt: skip
        if examples and (absent := labels["train"] - labels[split]):
            log.warning("task %s: no examples in %s of %s", name, split, _names(absent))
    if missing := {label for label in labels["train"] if label.strip().casefold() in _NOTHING}:
        log.warning("task %s: labels that may mean a missing one: %s", name, _names(missing))
    by_form: dict[str, list[str]] = {}
    for label in labels["train"]:
        form = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
        by_form.setdefault(form, []).append(label)
    if alike := [label for forms in by_form.values() if len(forms) > 1 for label in forms]:
        log.warning(
            "task %s: labels differ in case, spaces or Unicode form only: %s", name, _names(alike)
        )


def warn_of_imbalance(
    name: str,
    labels: Sequence[str],
    counts: Sequence[int],
    option: str = "classifier.class_weights=balanced",
) -> None:
    """Log the most and the least frequent label where they differ greatly.

    `option` is what makes them count alike, for the message.
    """
    if max(counts) >= UNEVEN * min(counts):
        common, rare = (labels[counts.index(edge(counts))] for edge in (max, min))
        log.warning(
            "task %s: labels are uneven in train: %r has %.1f%%, %r %.1f%%; %s makes each count "
            "alike in the loss", name, common, 100 * max(counts) / sum(counts), rare,
            100 * min(counts) / sum(counts), option,
        )  # fmt: skip


def _names(labels: Iterable[str]) -> str:
    """Return labels in quotes, so that spaces in them are seen; of many, the first."""
    names = sorted(labels)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def _is_blank(text: Hashable) -> bool:
    parts = text if isinstance(text, tuple) else (text,)
    return not any(str(part).strip() for part in parts)
