"""Finds near-duplicates: texts that have most of their words in common.

Two texts are compared by the Jaccard similarity of the sets of their runs of `WORDS` words. Which
pairs have to be compared is found without loss by prefix filtering (Chaudhuri et al. 2006, "A
primitive operator for similarity joins in data cleaning"): grams are ordered by how rare they are,
and two sets that have enough grams in common have one among the first of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tartan.data.overlap import word_grams, words_of

WORDS = 3
"""Number of consecutive words in a gram."""
MIN_SIMILARITY = 0.5
"""Least Jaccard similarity of two near-duplicates' grams."""
_PAIRS = 5_000_000
"""Number of pairs that are compared at a time, about, which bounds the memory."""


@dataclass(frozen=True)
class NearestDuplicates:
    """Texts that are near-duplicates of other texts, each with the most similar of these.

    Attributes:
        own: index of each such text, ascending, int `(found,)`.
        other: index of the most similar other text, the first of equally similar ones, int
            `(found,)`.
        similarity: Jaccard similarity of the two texts' grams, in (0, 1], float `(found,)`.
    """

    own: np.ndarray
    other: np.ndarray
    similarity: np.ndarray


def nearest_duplicates(texts: Sequence[str], others: Sequence[str]) -> NearestDuplicates:
    """Return those of `texts` that are near-duplicates of a text of `others`.

    Texts that differ only in case, white space and punctuation are near-duplicates too, unless they
    have fewer than three words.
    """
    sets, of_texts = _gram_sets([*texts, *others])
    mine, theirs = of_texts[: len(texts)], of_texts[len(texts) :]
    firsts = np.full(sets.shape[0] + 1, -1)  # the first of the other texts with each set
    firsts[theirs[::-1]] = np.arange(len(others))[::-1]  # of texts without grams at its end
    found: dict[int, tuple[float, int]] = {}
    wanted, there = np.unique(mine[mine >= 0]), np.flatnonzero(firsts[:-1] >= 0)
    for left, right in _candidates(sets, wanted, there):
        similarity = _similarity(sets, left, right)
        near = similarity >= MIN_SIMILARITY
        nearest = zip(left[near], firsts[right[near]], similarity[near], strict=True)
        for one, other, alike in nearest:
            found[one] = max(found.get(one, (0.0, 0)), (alike, -other))
    own = np.array([i for i, one in enumerate(mine.tolist()) if one in found], dtype=np.int64)
    best = np.array([found[one] for one in mine[own]]).reshape(-1, 2)
    return NearestDuplicates(own, -best[:, 1].astype(np.int64), best[:, 0])


def near_duplicate_groups(texts: Sequence[str]) -> np.ndarray:
    """Return the index of the group that each text belongs to, int `(texts,)`.

    Two texts are in one group if they are near-duplicates, or if a chain of such pairs joins them;
    a text of fewer than three words is a group of its own.
    """
    sets, of_texts = _gram_sets(texts)
    every = np.arange(sets.shape[0])
    groups = np.arange(len(every))
    for left, right in _candidates(sets, every, every):
        apart = (left < right) & (groups[left] != groups[right])
        left, right = left[apart], right[apart]
        near = _similarity(sets, left, right) >= MIN_SIMILARITY
        pairs = (np.ones(near.sum(), bool), (groups[left[near]], groups[right[near]]))
        graph = sparse.coo_matrix(pairs, (len(every), len(every)))
        groups = connected_components(graph, directed=False)[1][groups]
    found = len(every) + np.arange(len(texts))
    found[of_texts >= 0] = groups[of_texts[of_texts >= 0]]
    return found


def _gram_sets(texts: Sequence[str]) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return the different sets of grams, and the set of each text, -1 for one without grams.

    Returns:
        Which grams are in each set, the rarest first, int `(sets, grams)`; and int `(texts,)`.
    """
    grams, owners = word_grams([words_of(text) for text in texts], WORDS)
    _, columns, often = np.unique(grams, return_inverse=True, return_counts=True)
    columns = np.argsort(np.argsort(often, kind="stable"))[columns]  # the rarest gram is the first
    rows = sparse.csr_matrix(
        (np.ones(len(grams), np.int32), (owners, columns)), (len(texts), len(often))
    )
    rows.sum_duplicates()
    rows.data[:] = 1
    places: dict[bytes, int] = {}
    keys = (rows.indices[a:b].tobytes() for a, b in zip(rows.indptr, rows.indptr[1:], strict=False))
    of_texts = np.array([places.setdefault(key, len(places)) if key else -1 for key in keys], int)
    _, first = np.unique(of_texts, return_index=True)
    return rows[first[len(first) - len(places) :]], of_texts


def _candidates(
    sets: sparse.csr_matrix, mine: np.ndarray, others: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of one of `mine` and one of `others`, with all near-duplicates among them."""
    sizes = np.diff(sets.indptr)
    # of what two near-duplicates have in common, one gram is no further behind than this in each
    place = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], sizes)
    first = sets.copy()
    first.data = (place <= np.repeat(sizes - np.ceil(MIN_SIMILARITY * sizes), sizes)).astype(int)
    first.eliminate_zeros()
    prefixes, theirs = first[mine], first[others].T.tocsr()
    work = np.cumsum(prefixes @ np.diff(theirs.indptr))
    for block in np.split(np.arange(len(mine)), np.flatnonzero(np.diff(work // _PAIRS)) + 1):
        pairs = (prefixes[block] @ theirs).tocoo()
        for start in range(0, pairs.nnz, _PAIRS // 50):
            some = slice(start, start + _PAIRS // 50)
            yield mine[block[pairs.row[some]]], others[pairs.col[some]]


def _similarity(sets: sparse.csr_matrix, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Jaccard similarity of pairs of sets, float `(pairs,)`."""
    sizes = np.diff(sets.indptr)
    common = np.asarray(sets[left].multiply(sets[right]).sum(axis=1)).ravel()
    similarity: np.ndarray = common / (sizes[left] + sizes[right] - common)
    return similarity
