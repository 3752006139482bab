"""Reduces texts to sets of word grams, alike ones together, to compare few of them.

Two texts are compared by the Jaccard similarity of the sets of their runs of `WORDS` words. Which
texts have to be compared at all is found without loss by prefix filtering (Chaudhuri et al. 2006,
"A primitive operator for similarity joins in data cleaning"; Xiao et al. 2008, "Efficient
similarity joins for near duplicate detection"): grams are ordered by how rare they are, and two
texts that have enough grams in common have one among the first of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from src.data.overlap import word_grams, words_of

WORDS = 3
"""Number of consecutive words in a gram."""


@dataclass(frozen=True)
class GramSets:
    """The grams of texts. Texts of fewer than `WORDS` words have none.

    Grams that one set alone has are only counted, and those that occur in the same sets are one
    column. Sets with the same columns and the same size are one profile: they are equally similar
    to any other set. So texts that fill one form in different ways are few profiles.

    Attributes:
        of_texts: the set of each text, int `(texts,)`; -1 without grams.
        of_sets: the profile of each set, int `(sets,)`.
        sizes: number of grams in a set of each profile, int `(profiles,)`.
        columns: which columns each profile has, in the order of how rare they are, bool
            `(profiles, columns)`.
        weights: number of grams in each column, int `(columns,)`.
    """

    of_texts: np.ndarray
    of_sets: np.ndarray
    sizes: np.ndarray
    columns: sparse.csr_matrix
    weights: np.ndarray

    @staticmethod
    def of(texts: Sequence[str]) -> GramSets:
        """Return the sets of grams of texts."""
        grams, owners = word_grams([words_of(text) for text in texts], WORDS)
        filled, owners = np.unique(owners, return_inverse=True)
        known, columns = np.unique(grams, return_inverse=True)
        shape = (len(filled), len(known))
        rows = sparse.csr_matrix((np.ones(len(grams), dtype=bool), (owners, columns)), shape)
        _, first, sets = np.unique(_signatures(rows), return_index=True, return_inverse=True)
        of_texts = np.full(len(texts), -1, dtype=np.int64)
        of_texts[filled] = sets
        rows = rows[first]
        sizes = rows.getnnz(axis=1)
        shared, weights = _merged(rows)
        alike = np.stack([_signatures(shared), sizes.astype(np.uint64)])
        _, first, of_sets = np.unique(alike, axis=1, return_index=True, return_inverse=True)
        return GramSets(of_texts, of_sets, sizes[first], shared[first], weights)

    def prefixes(self, least: np.ndarray) -> sparse.csr_matrix:
        """Return each profile's columns from which on `least` of its grams follow.

        If two profiles have as many grams in common as either's `least`, then the rarest column in
        common is in the prefixes of both.

        Args:
            least: number of grams, `(profiles,)`.
        """
        rows = self.columns
        weights = self.weights[rows.indices]
        until = np.concatenate([[0], np.cumsum(weights)])  # weight of all columns before each
        owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        kept = until[rows.indptr[1:]][owners] - until[:-1] >= least[owners]
        where = (owners[kept], rows.indices[kept])
        return sparse.csr_matrix((np.ones(kept.sum(), dtype=bool), where), rows.shape)

    def similarities(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the Jaccard similarity of pairs of profiles, those of two sets each, `(pairs,)`.

        Args:
            left: a profile of each pair, int `(pairs,)`.
            right: the other one, int `(pairs,)`; where it is the same, two sets of it are meant.
        """
        common = self.columns[left].multiply(self.columns[right]) @ self.weights
        similarities: np.ndarray = common / (self.sizes[left] + self.sizes[right] - common)
        return similarities


def _merged(rows: sparse.csr_matrix) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows with one column for those that are equal, the rarest first, and their numbers."""
    often = rows.getnnz(axis=0)
    rows, often = rows[:, often > 1], often[often > 1]
    alike = _signatures(rows.T.tocsr())
    _, first, weights = np.unique(alike, return_index=True, return_counts=True)
    order = np.argsort(often[first], kind="stable")
    merged = rows[:, first[order]].tocsr()
    merged.sort_indices()
    return merged, weights[order]


def _signatures(rows: sparse.csr_matrix) -> np.ndarray:
    """Return 64 bits for each row, the same for rows of the same columns, uint64 `(rows,)`."""
    drawn = np.random.default_rng(0).integers(2**64, size=rows.shape[1], dtype=np.uint64)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(drawn[rows.indices], dtype=np.uint64)])
    signatures: np.ndarray = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return signatures
