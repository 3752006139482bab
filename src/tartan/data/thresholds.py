"""Chooses the probability above which a text has a label, for each of several labels."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartan.files import read_bytes

THRESHOLDS = "thresholds.json"
"""File in a classifier's folder with the threshold of each label by name."""


def best_thresholds(scores: NDArray[np.floating], codes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the threshold of each label with the best F1, in the middle between two scores.

    Scores and codes are `(examples, labels)`. A label that no example has gets 0.5.
    """
    found = np.full(scores.shape[1], 0.5)
    for label in range(scores.shape[1]):
        order = np.argsort(-scores[:, label], kind="stable")
        ranked = np.append(scores[order, label].astype(np.float64), 0.0)
        hits = codes[order, label].cumsum()
        if len(order) and hits[-1]:
            f1 = 2 * hits / (np.arange(1, len(order) + 1) + hits[-1])
            f1[ranked[:-1] == ranked[1:]] = -1  # nothing is between equal scores
            best = int(f1.argmax())
            found[label] = (ranked[best] + ranked[best + 1]) / 2
    return found


def centred(scores: NDArray[Any], thresholds: Sequence[float] | NDArray[Any]) -> NDArray[Any]:
    """Return probabilities in the same order, in which each label's threshold has moved to 0.5.

    Metrics compare with 0.5. Both are `(examples, labels)`.
    """
    at, values = np.asarray(thresholds, dtype=np.float64), scores.astype(np.float64)
    above = 0.5 + (values - at) / (2 * (1 - at))
    return np.where(values > at, above, np.minimum(values / (2 * at), 0.5))


def judged(scores: NDArray[Any], thresholds: Sequence[float] | None) -> NDArray[Any]:
    """Return scores for metrics; without thresholds they stay what they are."""
    return scores if thresholds is None else centred(scores, thresholds)


def judged_apart(
    scores: NDArray[Any], codes: NDArray[Any], texts: Sequence[str]
) -> NDArray[np.float64]:
    """Return scores for metrics, none of which depends on the code of its own text."""
    # of two halves, each has the thresholds that are best in the other
    half = np.array([zlib.crc32(text.encode()) % 2 == 0 for text in texts])
    shown = np.empty(scores.shape)
    for own in (half, ~half):
        shown[own] = centred(scores[own], best_thresholds(scores[~own], codes[~own]))
    return shown


def write_thresholds(
    folder: Path, labels: Sequence[str], thresholds: Sequence[float] | None
) -> None:
    """Write thresholds, where there are any, into a classifier's folder."""
    if thresholds is not None:
        content = dict(zip(labels, thresholds, strict=True))
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / THRESHOLDS).write_text(text, encoding="utf-8")


def read_thresholds(folder: Path, labels: Sequence[str]) -> list[float] | None:
    """Return the thresholds of a classifier's labels; None where its folder has none."""
    if not (folder / THRESHOLDS).is_file():
        return None
    content = json.loads(read_bytes(folder / THRESHOLDS))
    return [float(content[label]) for label in labels]
