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


class NgramIndex:
    """An index of the n-grams of texts that have to stay unseen.

    Args:
        texts: the texts that have to stay unseen.
        n: number of words in an n-gram, at least 1.
    """

    def __init__(self, texts: Iterable[str], n: int) -> None:
        self._n = n
        self._grams = {gram for text in texts for gram in _ngrams(words_of(text), n)}

    def overlaps(self, text: str) -> bool:
        """Return whether `text` shares `n` words in a row with an indexed text, or equals one."""
        return not self._grams.isdisjoint(_ngrams(words_of(text), self._n))


def words_of(text: str) -> list[str]:
    """Return the normalised words of a text."""
    words: list[str] = simplify_text(text, _ASCII if text.isascii() else _ANY).split()
    return words


def _ngrams(words: list[str], n: int) -> Iterable[tuple[str, ...]]:
    """Return all runs of `n` words; of fewer words, all of them as one run."""
    if 0 < len(words) < n:
        return [tuple(words)]
    return zip(*(words[start:] for start in range(n)), strict=False)
