"""Finds near-duplicates: texts that have most of their words in common.

Two texts are compared by the Jaccard similarity of the sets of their runs of `WORDS` words. Which
pairs have to be compared is found without loss by prefix filtering (Chaudhuri et al. 2006, "A
primitive operator for similarity joins in data cleaning"): grams are ordered by how rare they are,
and two sets that have enough grams in common have one among the first of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tartan.data.overlap import word_grams, words_of

WORDS = 3
"""Number of consecutive words in a gram."""
MIN_SIMILARITY = 0.5
"""Least Jaccard similarity of two near-duplicates' grams."""
_PAIRS = 5_000_000
"""Number of pairs that are looked for at a time, about, which bounds the memory."""


def nearest_duplicates(texts: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Return those of `texts` that are near-duplicates of a text of `others`.

    Texts that differ only in case, white space and punctuation are near-duplicates too, unless they
    have fewer than three words.

    Returns:
        A row for each with its index `text`, ascending, the index `other` of the most similar other
        text (the first of equally similar ones), and their Jaccard `similarity`.
    """
    grams = _gram_sets([*texts, *others])
    pairs = pd.concat(_similar(grams[: len(texts)], grams[len(texts) :]))
    pairs = pairs.sort_values(["text", "other"], ignore_index=True)
    best = pairs.groupby("text")["similarity"].idxmax()
    return pairs.loc[best].reset_index(drop=True)


def same_texts(texts: Sequence[str]) -> np.ndarray:
    """Return the index of the group that each text belongs to, int `(texts,)`.

    Two texts are in one group if they are equal regardless of case, white space and punctuation, if
    they are near-duplicates, or if a chain of such pairs joins them.
    """
    words = np.array([" ".join(words_of(text)) for text in texts], dtype=object)
    places, distinct = pd.factorize(words)
    grams, groups = _gram_sets(distinct), np.arange(len(distinct))
    for some in _similar(grams, grams):
        pairs = (np.ones(len(some), bool), (groups[some["text"]], groups[some["other"]]))
        graph = sparse.coo_matrix(pairs, (len(groups), len(groups)))
        groups = connected_components(graph, directed=False)[1][groups]
    of_texts: np.ndarray = groups[places]
    return of_texts


def _gram_sets(texts: Sequence[str]) -> sparse.csr_matrix:
    """Return which grams each text has, the rarest first, 0 or 1 `(texts, grams)`."""
    grams, owners = word_grams([words_of(text) for text in texts], WORDS)
    _, columns, counts = np.unique(grams, return_inverse=True, return_counts=True)
    columns = np.argsort(np.argsort(counts, kind="stable"))[columns]
    sets = sparse.csr_matrix(
        (np.ones(len(grams), np.int32), (owners, columns)), (len(texts), len(counts))
    )
    sets.sum_duplicates()
    sets.data[:] = 1
    return sets


def _similar(left: sparse.csr_matrix, right: sparse.csr_matrix) -> Iterator[pd.DataFrame]:
    """Yield near-duplicates: rows `text` of `left` and `other` of `right`, and `similarity`."""
    prefixes, others = _prefixes(left), _prefixes(right).T.tocsr()
    sizes, other_sizes = np.diff(left.indptr), np.diff(right.indptr)
    work = np.cumsum(prefixes @ np.diff(others.indptr))
    for rows in np.split(np.arange(len(work)), np.flatnonzero(np.diff(work // _PAIRS)) + 1):
        candidates = (prefixes[rows] @ others).tocoo()
        at_once = max(1, _PAIRS // 50)
        for start in range(0, max(1, candidates.nnz), at_once):
            some = slice(start, start + at_once)
            one, other = rows[candidates.row[some]], candidates.col[some]
            common = np.asarray(left[one].multiply(right[other]).sum(axis=1)).ravel()
            similarity = common / (sizes[one] + other_sizes[other] - common)
            pairs = pd.DataFrame({"text": one, "other": other, "similarity": similarity})
            yield pairs[pairs["similarity"] >= MIN_SIMILARITY]


def _prefixes(sets: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the first grams of each set, one of which any near-duplicate has too."""
    sizes = np.diff(sets.indptr)
    place = np.arange(sets.nnz) - np.repeat(sets.indptr[:-1], sizes)
    prefixes = sets.copy()
    prefixes.data = (place <= np.repeat(sizes - np.ceil(MIN_SIMILARITY * sizes), sizes)).astype(int)
    prefixes.eliminate_zeros()
    return prefixes
