"""Finds texts that share a run of words with texts that have to stay unseen (n-gram overlap).

Two texts overlap where they have `n` words in a row in common, after datatrove's normalisation
(that of its own blocks for decontamination): case, punctuation, diacritics and the digits of
numbers do not count. A text of fewer than `n` words overlaps only with the same text.
"""

from __future__ import annotations

from collections.abc import Iterable

from datatrove.utils.text import TextNormConfig, simplify_text

_ASCII = TextNormConfig(norm_whitespace=False, norm_unicode_diacritics=False)
"""Normalisation that ASCII text still needs; its words are split at white space anyway."""
_ANY = TextNormConfig(norm_whitespace=False)


def words_of(text: str) -> list[str]:
    """Return the normalised words of a text."""
    words: list[str] = simplify_text(text, _ASCII if text.isascii() else _ANY).split()
    return words


class NgramIndex:
    """An index of the n-grams of texts that have to stay unseen.

    Args:
        texts: the texts that have to stay unseen.
        n: number of words in an n-gram, at least 1.
    """

    def __init__(self, texts: Iterable[str], n: int) -> None:
        self._n, self._half = n, (n + 1) // 2
        self._whole: set[str] = set()
        self._halves: set[str] = set()
        for text in texts:
            words = words_of(text)
            if 0 < len(words) < n:
                self._whole.add(" ".join(words))
            self._whole.update(_ngrams(words, n, 1))
            if len(words) >= n:
                self._halves.update(_ngrams(words, self._half, 1))

    def overlaps(self, text: str) -> bool:
        """Return whether `text` shares `n` words in a row with an indexed text, or equals one."""
        words = words_of(text)
        if len(words) < self._n:
            return " ".join(words) in self._whole
        # Of any n words in a row, n // 2 + 1 half-grams are part: every (n // 2 + 1)-th one of the
        # text is enough to find that there is none, which is so of nearly all texts.
        few = _ngrams(words, self._half, self._n - self._half + 1)
        if self._halves.isdisjoint(few):
            return False
        return not self._whole.isdisjoint(_ngrams(words, self._n, 1))


def _ngrams(words: list[str], n: int, step: int) -> list[str]:
    return [" ".join(words[i : i + n]) for i in range(0, len(words) - n + 1, step)]
