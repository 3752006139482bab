"""Finds texts that have words in common: with held-out ones (contamination), or most of them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import regex
from scipy import sparse
from scipy.sparse.csgraph import connected_components

WORDS = 13  # number of consecutive words in an n-gram of auxiliary texts
WORDS_VERSION = 3  # version of what `words_of` returns: a part of the keys of what is cached of it
MIN_SIMILARITY = 0.5  # least Jaccard similarity of two near-duplicates
_GRAM = 3  # number of consecutive words in a gram of near-duplicates
_PAIRS = 5_000_000  # number of pairs that are compared at a time, about, which bounds the memory
_BASE = np.uint64(0x9E3779B97F4A7C15)
_WORD_OF_ASCII = re.compile(r"\w+")
# marks, but for those that choose the form of a glyph
_MARKS = r"[[\p{Mn}\p{Mc}]--[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]]"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTERS = r"\p{L}\p{N}_"
_BETWEEN = regex.compile(rf"[^{_LETTERS}{_MARKS}]+", regex.V1)
_WORD = regex.compile(
    rf"(?:[[{_LETTERS}]--[{_UNSPACED}]]+{_MARKS}*)+|[[{_LETTERS}]&&[{_UNSPACED}]]{_MARKS}*",
    regex.V1,
)


def words_of(text: str) -> list[str]:
    """Return the words of a text, regardless of case, punctuation and Unicode form.

    In scripts that are written without spaces, such as Chinese, every character is a word.
    """
    if text.isascii():
        return _WORD_OF_ASCII.findall(text.casefold())
    # what is no part of a word goes first: NFKC makes letters of some of it, such as the TM sign
    folded = unicodedata.normalize("NFKC", _BETWEEN.sub(" ", text)).casefold()
    # and a slash of fractions, which would break a word in two: 1\u20442 of \xbd
    words: list[str] = _WORD.findall(unicodedata.normalize("NFKC", folded).replace("\u2044", ""))
    return words


def folded(text: str) -> str:
    """Return the text regardless of case and white space."""
    return " ".join(text.casefold().split())


class NgramIndex:
    """The word n-grams of held-out texts, hashed, that are looked for in a corpus.

    A text that shares n words in a row with a held-out one is contaminated (Brown et al. 2020,
    appendix C); a held-out text of fewer words is looked for as a whole.
    """

    def __init__(self, held_out: Iterable[str], n: int = WORDS) -> None:
        self._n = n
        self._grams, self._shorter = (np.unique(hashes) for hashes, _ in self._hashes(held_out))

    def contaminates(self, texts: Iterable[str | None]) -> np.ndarray:
        """Return whether each text shares n words with, or is, a held-out text, bool `(texts,)`."""
        texts = list(texts)
        contaminated = np.zeros(len(texts), dtype=bool)
        known = (self._grams, self._shorter)
        for (hashes, owners), held_out in zip(self._hashes(texts), known, strict=True):
            contaminated[owners[np.isin(hashes, held_out)]] = True
        return contaminated

    def _hashes(self, texts: Iterable[str | None]) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Return hashes and the indices of their texts: of n-grams, and of whole shorter texts."""
        words = [words_of(text or "") for text in texts]
        short = [(i, " ".join(own)) for i, own in enumerate(words) if 0 < len(own) < self._n]
        owners = np.array([i for i, _ in short], dtype=np.int64)
        return _grams(words, self._n), (_hashed([text for _, text in short]), owners)


def nearest_duplicates(texts: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Return those of `texts` that are near-duplicates of a text of `others`.

    Each has a row with its index `text`, ascending, the index `other` of the first most similar
    one, and their `similarity`: Jaccard's, of the sets of their runs of three words.
    """
    sets = _gram_sets([*texts, *others])
    pairs = pd.concat(_similar(sets[: len(texts)], sets[len(texts) :]))
    pairs = pairs.sort_values(["text", "other"], ignore_index=True)
    best = pairs.groupby("text")["similarity"].idxmax()
    return pairs.loc[best].reset_index(drop=True)


def same_texts(texts: Sequence[str]) -> np.ndarray:
    """Return the index of the group that each text belongs to, int `(texts,)`.

    Texts that have the same words or are near-duplicates are in one group, and chains of these.
    """
    words = np.array([" ".join(words_of(text)) for text in texts], dtype=object)
    places, distinct = pd.factorize(words)
    sets, groups = _gram_sets(distinct), np.arange(len(distinct))
    for some in _similar(sets, sets):
        pairs = (np.ones(len(some), bool), (groups[some["text"]], groups[some["other"]]))
        graph = sparse.coo_matrix(pairs, (len(groups), len(groups)))
        groups = connected_components(graph, directed=False)[1][groups]
    of_texts: np.ndarray = groups[places]
    return of_texts


def _gram_sets(texts: Sequence[str]) -> sparse.csr_matrix:
    """Return which grams each text has, 0 or 1 `(texts, grams)`."""
    grams, owners = _grams([words_of(text) for text in texts], _GRAM)
    distinct, columns = np.unique(grams, return_inverse=True)
    sets = sparse.csr_matrix(
        (np.ones(len(grams), np.int32), (owners, columns)), (len(texts), len(distinct))
    )
    sets.data[:] = 1  # after the sums of repeated grams
    return sets


def _similar(left: sparse.csr_matrix, right: sparse.csr_matrix) -> Iterator[pd.DataFrame]:
    """Yield near-duplicates: rows `text` of `left` and `other` of `right`, and `similarity`."""
    sizes, other_sizes, columns = np.diff(left.indptr), np.diff(right.indptr), right.T.tocsr()
    work = np.cumsum(left @ np.diff(columns.indptr))
    for rows in np.split(np.arange(len(work)), np.flatnonzero(np.diff(work // _PAIRS)) + 1):
        common = (left[rows] @ columns).tocoo()
        one, other = rows[common.row], common.col
        similarity = common.data / (sizes[one] + other_sizes[other] - common.data)
        pairs = pd.DataFrame({"text": one, "other": other, "similarity": similarity})
        yield pairs[similarity >= MIN_SIMILARITY]


def _grams(texts: list[list[str]], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each text's hashed runs of `count` words and their text's index, both `(n-grams,)`."""
    owners = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
    hashed = _hashed([word for words in texts for word in words])
    starts = max(len(hashed) - count + 1, 0)
    grams = np.zeros(starts, dtype=np.uint64)
    for offset in range(count):
        grams = grams * _BASE + hashed[offset : offset + starts]
    inside = owners[:starts] == owners[len(owners) - starts :]
    return grams[inside], owners[:starts][inside]


def _hashed(contents: list[str]) -> np.ndarray:
    hashed: np.ndarray = pd.util.hash_array(np.array(contents, dtype=object), categorize=False)
    return hashed.astype(np.uint64)
