"""Finds near-duplicates: pairs of texts that have most of their words in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from src.data.overlap import word_grams, words_of

WORDS = 3
"""Number of consecutive words in a gram."""
MIN_SIMILARITY = 0.5
"""Least Jaccard similarity of two near-duplicates' grams."""
_FREQUENT = 1000
"""Grams that occur in more texts than this are set phrases of the field and are not compared."""
_AT_ONCE = 2000
"""Number of texts that are compared with all others at a time, which bounds the memory."""


@dataclass(frozen=True)
class NearDuplicatePairs:
    """Pairs of near-duplicates.

    Attributes:
        own: index of each pair's text among the first texts, int `(pairs,)`.
        other: index of each pair's text among the second texts, int `(pairs,)`.
        similarity: Jaccard similarity of the two texts' grams, in (0, 1], float `(pairs,)`.
    """

    own: np.ndarray
    other: np.ndarray
    similarity: np.ndarray


def near_duplicate_pairs(own: Sequence[str], others: Sequence[str]) -> NearDuplicatePairs:
    """Return all pairs of a text of `own` and a text of `others` that are near-duplicates.

    Texts that differ only in case, white space and punctuation are near-duplicates too, unless they
    have fewer than three words.
    """
    words = [words_of(text) for text in (*own, *others)]
    grams, owners = word_grams(words, WORDS)
    known, columns = np.unique(grams, return_inverse=True)
    shape = (len(words), len(known))
    rows = sparse.csr_matrix((np.ones(len(grams), dtype=np.int32), (owners, columns)), shape)
    rows.data[:] = 1  # a gram counts once a text
    sizes = rows.getnnz(axis=1)
    rare = rows[:, rows.getnnz(axis=0) <= _FREQUENT]
    theirs = rare[len(own) :].T.tocsc()
    found = []
    for start in range(0, len(own), _AT_ONCE):
        end = min(start + _AT_ONCE, len(own))
        common = (rare[start:end] @ theirs).tocoo()
        either = sizes[start + common.row] + sizes[len(own) + common.col] - common.data
        similarity = common.data / either
        near = similarity >= MIN_SIMILARITY
        found.append((start + common.row[near], common.col[near], similarity[near]))
    return NearDuplicatePairs(*(np.concatenate(part) for part in zip(*found, strict=True)))
