"""Finds texts of a corpus that share word n-grams with held-out texts (contamination).

As in Brown et al. (2020, appendix C), a text is contaminated where it shares 13 words in a row with
one that is held out, regardless of case, white space and punctuation. A held-out text of fewer
words is looked for as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

WORDS = 13
"""Number of consecutive words in a gram."""
_BASE = np.uint64(0x9E3779B97F4A7C15)
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, regardless of case and punctuation."""
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class HeldOutGrams:
    """Hashes of held-out texts, 64 bits each, that are looked for in a corpus.

    Attributes:
        grams: hashes of each `WORDS` words in a row, sorted, `(n-grams,)`.
        shorter: hashes of whole texts that have fewer words, sorted, `(texts,)`.
    """

    grams: np.ndarray
    shorter: np.ndarray

    @staticmethod
    def of(texts: Iterable[str]) -> HeldOutGrams:
        """Hash the held-out texts; each text of a pair counts by itself."""
        words = [words_of(text) for text in texts]
        grams, _ = word_grams(words, WORDS)
        return HeldOutGrams(np.unique(grams), np.unique(_whole(words)[0]))

    def contaminates(self, texts: Iterable[str | None]) -> np.ndarray:
        """Return whether each text shares a gram with, or is, a held-out text, bool `(texts,)`."""
        words = [words_of(text or "") for text in texts]
        found = np.zeros(len(words), dtype=bool)
        for (hashed, owners), known in (
            (word_grams(words, WORDS), self.grams),
            (_whole(words), self.shorter),
        ):
            found[owners[np.isin(hashed, known)]] = True
        return found


def word_grams(texts: list[list[str]], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each text's hashed runs of `count` words and their text's index, both `(n-grams,)`."""
    owners = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
    hashed = _hashes([word for words in texts for word in words])
    starts = max(len(hashed) - count + 1, 0)
    grams = np.zeros(starts, dtype=np.uint64)
    for offset in range(count):
        grams = grams * _BASE + hashed[offset : offset + starts]
    inside = owners[:starts] == owners[len(owners) - starts :]
    return grams[inside], owners[:starts][inside]


def _whole(texts: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes and indices of non-blank texts of fewer than `WORDS` words."""
    short = [(" ".join(words), i) for i, words in enumerate(texts) if 0 < len(words) < WORDS]
    return _hashes([text for text, _ in short]), np.array([i for _, i in short], dtype=np.int64)


def _hashes(contents: list[str]) -> np.ndarray:
    hashed: np.ndarray = pd.util.hash_array(np.array(contents, dtype=object), categorize=False)
    return hashed.astype(np.uint64)
