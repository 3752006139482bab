"""Near-duplicates: pairs of texts that differ little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from src.data.overlap import word_grams, words_of

WORDS = 3
"""Words in a row that are compared."""
ALIKE = 0.5
"""Share of them that two texts have in common (Jaccard) to be near-duplicates."""
_FREQUENT = 1000
"""Grams that more texts have are phrases of the field and tell nothing."""
_AT_ONCE = 2000


@dataclass(frozen=True)
class Alike:
    """Pairs of near-duplicates, `(pairs,)` each.

    Attributes:
        own: the place of the one among the first texts.
        other: the place of the other among the second texts.
        similarity: the grams both have as a share of those that either has (Jaccard), in (0, 1].
    """

    own: np.ndarray
    other: np.ndarray
    similarity: np.ndarray


def alike(own: Sequence[str], others: Sequence[str]) -> Alike:
    """All pairs of one of `own` and one of `others` that are near-duplicates.

    Texts that are equal but for case, white space and punctuation are among them, but for those of
    fewer than three words.
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
        near = similarity >= ALIKE
        found.append((start + common.row[near], common.col[near], similarity[near]))
    return Alike(*(np.concatenate(part) for part in zip(*found, strict=True)))
