"""Finds texts that share word n-grams with texts that have to stay unseen (contamination).

As in Brown et al. (2020, appendix C), a text is contaminated where it shares `n` words in a row
with one that is held out, regardless of case, white space, punctuation and Unicode form. A held-out
text of fewer words is looked for as a whole.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pandas as pd

WORDS = 13
"""Number of consecutive words in an n-gram of auxiliary texts."""
_BASE = np.uint64(0x9E3779B97F4A7C15)
WORDS_VERSION = 2
"""Version of what `words_of` returns: a part of the keys of what is cached of it."""
_WORD_OF_ASCII = re.compile(r"\w+")
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Thai to Khmer
    r"\u3040-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # Hiragana and Katakana
    r"\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff"  # Han
    r"\U00020000-\U0003347f"
)
"""Blocks of Thai, Lao, Myanmar, Khmer, kana and Han, which set no spaces between words."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, regardless of case, punctuation and Unicode form.

    Combining marks belong to the letter before them. In scripts that are written without spaces
    (Chinese, Japanese, Thai, Lao, Khmer, Burmese) every character counts as a word.
    """
    if text.isascii():
        return _WORD_OF_ASCII.findall(text.casefold())
    between, word = _patterns()
    # what is no part of a word goes first: NFKC makes letters of some of it, such as the TM sign
    folded = unicodedata.normalize("NFKC", between.sub(" ", text)).casefold()
    # and a slash of fractions, which would break a word in two: 1\u20442 of \xbd
    return word.findall(unicodedata.normalize("NFKC", folded).replace("\u2044", ""))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of what stands between words, and of a word; the first call takes 0.3 s."""
    # combining marks, but for those that choose or frame a glyph (emoji)
    marks = "".join(
        mark
        for mark in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(mark) in ("Mn", "Mc")
        and "VARIATION SELECTOR" not in unicodedata.name(mark)
    )
    rest = rf"[^\W{_UNSPACED}]"
    return (
        re.compile(rf"[^\w{marks}]+"),
        re.compile(rf"{rest}+(?:[{marks}]+{rest}*)*|(?=\w)[{_UNSPACED}][{marks}]*"),
    )


class NgramIndex:
    """The word n-grams of held-out texts, 64-bit hashes, that are looked for in a corpus.

    Args:
        held_out: the texts; each text of a pair counts by itself.
        n: number of words in an n-gram.
        words: splits a text into normalised words.
    """

    def __init__(
        self, held_out: Iterable[str], n: int = WORDS, words: Callable[[str], list[str]] = words_of
    ) -> None:
        self._n, self._words = n, words
        split = [words(text) for text in held_out]
        self._grams = np.unique(word_grams(split, n)[0])
        self._shorter = np.unique(self._whole(split)[0])

    def contaminates(self, texts: Iterable[str | None]) -> np.ndarray:
        """Return whether each text shares n words with, or is, a held-out text, bool `(texts,)`."""
        words = [self._words(text or "") for text in texts]
        contaminated = np.zeros(len(words), dtype=bool)
        for (hashed, owners), known in (
            (word_grams(words, self._n), self._grams),
            (self._whole(words), self._shorter),
        ):
            contaminated[owners[np.isin(hashed, known)]] = True
        return contaminated

    def _whole(self, texts: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes and indices of non-blank texts of fewer than `n` words."""
        short = [(" ".join(words), i) for i, words in enumerate(texts) if 0 < len(words) < self._n]
        return _hashes([text for text, _ in short]), np.array([i for _, i in short], dtype=np.int64)


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


def _hashes(contents: list[str]) -> np.ndarray:
    hashed: np.ndarray = pd.util.hash_array(np.array(contents, dtype=object), categorize=False)
    return hashed.astype(np.uint64)
