"""Near-duplicates: texts of a split that differ little from one of another split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from src.data.overlap import word_grams, words_of

_WORDS = 3
"""Words in a row that are compared."""
ALIKE = 0.5
"""Share of them that two texts have in common (Jaccard) to be near-duplicates."""
_FREQUENT = 1000
"""Grams that more texts have are phrases of the field and tell nothing."""
_AT_ONCE = 2000


@dataclass(frozen=True)
class Near:
    """An example that differs little from one of another split.

    Attributes:
        split: whose example it is.
        other: where the other is.
        index: of the example in its split, from 0.
        other_index: of the most similar one.
        similarity: the grams both have as a share of those that either has (Jaccard), in (0, 1].
        text: the example's text.
    """

    split: str
    other: str
    index: int
    other_index: int
    similarity: float
    text: str


def near_duplicates(
    split: str, own: Sequence[str], other: str, others: Sequence[str]
) -> list[Near]:
    """The examples of `own` that are near-duplicates of one of `others`, the most similar first.

    Texts that are equal but for case, white space and punctuation are among them, but for those of
    fewer than three words.
    """
    words = [words_of(text) for text in (*own, *others)]
    grams, owners = word_grams(words, _WORDS)
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
        similar = common.data / either
        best = {}
        for i in np.lexsort((-common.col, similar)):  # the last of each is the most similar
            best[start + int(common.row[i])] = (float(similar[i]), int(common.col[i]))
        found += [
            Near(split, other, index, twin, similarity, own[index])
            for index, (similarity, twin) in best.items()
            if similarity >= ALIKE
        ]
    return sorted(found, key=lambda near: (-near.similarity, near.index))
