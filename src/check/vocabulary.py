"""The fit of an encoder's vocabulary to text: into how many pieces it breaks the words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from src.encoders.text_encoder import TextEncoder

REFERENCE = Path(__file__).with_name("general_english.txt")
"""Seventy everyday sentences written for this comparison: what an English encoder knows best."""
MANY = 3
"""Pieces from which on a word counts as broken up."""
_WORD = re.compile(r"[^\W\d_]+")
_SHOWN = 6
_LONGEST_MEAN = 15
"""Letters a word has on average where words are not set apart by spaces."""


@dataclass(frozen=True)
class Vocabulary:
    """Words are runs of letters, each tokenised as it stands in running text.

    Attributes:
        source: a split, an auxiliary task, or the reference.
        words: how many were looked at.
        pieces: pieces a word, on average.
        broken: share of the words that are broken into three pieces or more.
        unknown: share of the words of which a piece is not in the vocabulary.
        most_broken: the most frequent of the broken words.
        comparable: whether words are set apart by spaces, so that they can be counted.
    """

    source: str
    words: int
    pieces: float
    broken: float
    unknown: float
    most_broken: list[str]
    comparable: bool


def vocabulary_of(source: str, texts: Sequence[str], encoder: TextEncoder) -> Vocabulary | None:
    """Break the words of `texts` into pieces, each different one once; None without any word."""
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    if not counts:
        return None
    words = list(counts)
    encoded = encoder.tokenizer(
        [f" {word}" for word in words],  # as inside a sentence: for some it matters
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    times = np.fromiter(counts.values(), dtype=np.int64)
    pieces = np.fromiter((len(ids) for ids in encoded), dtype=np.int64)
    unknown_id = encoder.tokenizer.unk_token_id
    unknown = np.fromiter((unknown_id in ids for ids in encoded), dtype=bool)
    total = int(times.sum())
    broken = pieces >= MANY
    by_frequency = np.argsort(-times * broken, kind="stable")[: min(_SHOWN, int(broken.sum()))]
    letters = np.fromiter(map(len, words), dtype=np.int64)
    return Vocabulary(
        source=source,
        words=total,
        pieces=float(pieces @ times) / total,
        broken=float(broken @ times) / total,
        unknown=float(unknown @ times) / total,
        most_broken=[words[index] for index in by_frequency],
        comparable=float(letters @ times) / total <= _LONGEST_MEAN,
    )


def reference_vocabulary(encoder: TextEncoder) -> Vocabulary:
    """That of general English."""
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    found = vocabulary_of("general English", lines, encoder)
    assert found is not None
    return found
