"""Measures how well an encoder's vocabulary fits a text: into how many pieces it splits words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tartan.encoders.text_encoder import TextEncoder

REFERENCE = Path(__file__).with_name("general_english.txt")
"""Seventy everyday sentences, written for this comparison, in English that any encoder knows."""
MANY = 3
"""Number of pieces from which a word counts as broken."""
MOST_UNKNOWN = 0.02
"""Share of unknown words from which the encoder counts as unable to read a text.

In the paper's English tasks, MiniLM does not know 0.05 % at most. An unknown word is often a single
piece, so that unreadable text would seem to fit well.
"""
_WORD = re.compile(r"[^\W\d_]+")
_SHOWN = 6
_LONGEST_MEAN = 15
"""Mean length of words above which they are not separated by spaces [letters]."""


@dataclass(frozen=True)
class Vocabulary:
    """How an encoder's tokenizer splits the words of a source.

    A word is a run of letters, tokenised as it stands in running text.

    Attributes:
        source: name of a split or auxiliary task, or of the reference.
        words: number of words.
        pieces: mean number of pieces per word.
        broken: share of the words that are split into three pieces or more.
        unknown: share of the words with a piece that is not in the vocabulary.
        most_broken: the most frequent of the broken words.
        comparable: whether words are separated by spaces, so that they can be counted.
    """

    source: str
    words: int
    pieces: float
    broken: float
    unknown: float
    most_broken: list[str]
    comparable: bool

    def times(self, reference: Vocabulary) -> float | None:
        """Return pieces per word as a multiple of the reference's.

        It is None where words cannot be told apart, or too many are unknown.
        """
        for one in (self, reference):
            if not one.comparable or one.unknown >= MOST_UNKNOWN:
                return None
        return self.pieces / reference.pieces


def vocabulary_of(source: str, texts: Sequence[str], encoder: TextEncoder) -> Vocabulary | None:
    """Return how the words of `texts` are split; None if there are none."""
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    if not counts:
        return None
    words, times = zip(*counts.most_common(), strict=True)
    encoded = encoder.tokenizer(
        [f" {word}" for word in words],  # as inside a sentence: for some it matters
        add_special_tokens=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    pieces = np.array([len(ids) for ids in encoded])
    unknown = [encoder.tokenizer.unk_token_id in ids for ids in encoded]
    broken = pieces >= MANY
    return Vocabulary(
        source=source,
        words=sum(times),
        pieces=float(np.average(pieces, weights=times)),
        broken=float(np.average(broken, weights=times)),
        unknown=float(np.average(unknown, weights=times)),
        most_broken=[words[index] for index in np.flatnonzero(broken)[:_SHOWN]],
        comparable=float(np.average([*map(len, words)], weights=times)) <= _LONGEST_MEAN,
    )


def reference_vocabulary(encoder: TextEncoder) -> Vocabulary:
    """Return how the words of general English are split."""
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    found = vocabulary_of("general English", lines, encoder)
    assert found is not None
    return found
