"""Finds near-duplicates: texts that have most of their words in common.

Two texts are compared by the Jaccard similarity of the sets of their runs of `WORDS` words. Alike
sets are reduced to one, and which others have to be compared at all is found without loss by prefix
filtering (Chaudhuri et al. 2006, "A primitive operator for similarity joins in data cleaning"; Xiao
et al. 2008, "Efficient similarity joins for near duplicate detection"): grams are ordered by how
rare they are, and two texts that have enough grams in common have one among the first of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import DisjointSet

from tartan.data.overlap import word_grams, words_of

WORDS = 3
"""Number of consecutive words in a gram."""
MIN_SIMILARITY = 0.5
"""Least Jaccard similarity of two near-duplicates' grams."""
_AT_ONCE = 10_000_000
"""Number of columns that are looked at at a time, about, which bounds the memory."""


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


def nearest_duplicates(own: Sequence[str], others: Sequence[str]) -> NearestDuplicates:
    """Return the texts of `own` that are near-duplicates of a text of `others`.

    Texts that differ only in case, white space and punctuation are near-duplicates too, unless they
    have fewer than three words.
    """
    sets = GramSets.of([*own, *others])
    ours, theirs = sets.of_texts[: len(own)], sets.of_texts[len(own) :]
    filled, places = np.flatnonzero(ours >= 0), np.flatnonzero(theirs >= 0)
    equal = _firsts(theirs[places], places, len(sets.of_sets))[ours[filled]]
    profiles = sets.of_sets[ours[filled]]
    firsts = _firsts(sets.of_sets[theirs[places]], places, len(sets.sizes))
    nearest, similarity = _nearest(sets, np.unique(profiles[equal < 0]), firsts)
    other = np.where(equal < 0, nearest[profiles], equal)
    found = other >= 0
    return NearestDuplicates(
        own=filled[found],
        other=other[found],
        similarity=np.where(equal < 0, similarity[profiles], 1.0)[found],
    )


def near_duplicate_groups(texts: Sequence[str]) -> np.ndarray:
    """Return the index of the group that each text belongs to, int `(texts,)`.

    Two texts are in one group if they are near-duplicates, or if a chain of such pairs joins them;
    a text of fewer than three words is a group of its own.
    """
    sets = GramSets.of(texts)
    count = len(sets.sizes)
    chains = _chains(sets)
    chained = np.bincount(chains, minlength=count)[chains] > 1
    alike = sets.similarities(np.arange(count), np.arange(count)) >= MIN_SIMILARITY
    single = count + np.arange(len(sets.of_sets))
    groups = np.where((chained | alike)[sets.of_sets], chains[sets.of_sets], single)
    found = count + len(single) + np.arange(len(texts))
    filled = sets.of_texts >= 0
    found[filled] = groups[sets.of_texts[filled]]
    return found


def _firsts(groups: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Return the least of the places in each of `count` groups, -1 in those without any."""
    firsts = np.full(count, -1, dtype=np.int64)
    firsts[groups[::-1]] = places[::-1]
    return firsts


def _nearest(
    sets: GramSets, wanted: np.ndarray, firsts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar text of each profile, -1 for none, and how similar it is.

    Args:
        sets: the sets of grams.
        wanted: the profiles for which it is looked for, none of whose sets is another text's.
        firsts: the first of the other texts of each profile, -1 for none, int `(profiles,)`.
    """
    nearest = np.full(len(sets.sizes), -1, dtype=np.int64)
    similarity = np.zeros(len(sets.sizes))
    for own, other in _candidates(sets, wanted, np.flatnonzero(firsts >= 0)):
        similar = sets.similarities(own, other)
        near = similar >= MIN_SIMILARITY
        own, places, similar = own[near], firsts[other[near]], similar[near]
        order = np.lexsort((-places, similar))  # the last of each is the most similar
        nearest[own[order]] = places[order]
        similarity[own[order]] = similar[order]
    return nearest, similarity


def _candidates(
    sets: GramSets, own: np.ndarray, others: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of profiles, all near-duplicates among them; those of one of `own` together."""
    prefixes = sets.prefixes(MIN_SIMILARITY * sets.sizes)
    ours, theirs = prefixes[own], prefixes[others].T.tocsr()
    pairs = np.minimum(ours.astype(np.int64) @ theirs.getnnz(axis=1), len(others))
    looked_at = np.cumsum(pairs * (1 + sets.columns.getnnz(axis=1)[own]))
    for part in np.split(np.arange(len(own)), np.flatnonzero(np.diff(looked_at // _AT_ONCE)) + 1):
        common = (ours[part] @ theirs).tocoo()
        yield own[part[common.row]], others[common.col]


def _chains(sets: GramSets) -> np.ndarray:
    """Return for each profile one of those that chains of near-duplicates join it with.

    Profiles come in the order of their sizes. Those that came before are listed by the columns of
    their prefixes. A column has several lists, each of profiles that are joined already, of which
    one that is near is enough: then the list goes into `together`, the one of `own`; else it
    stays `apart`. `far` are the profiles that were compared with `own` and found different.
    """
    probed = sets.prefixes(MIN_SIMILARITY * sets.sizes)
    # what two sets have in common is at least this much of the smaller one
    listed = sets.prefixes(2 * MIN_SIMILARITY / (1 + MIN_SIMILARITY) * sets.sizes)
    columns: dict[int, set[int]] = {}
    sizes, weights = sets.sizes.tolist(), sets.weights.tolist()
    joined = DisjointSet(range(len(sizes)))
    lists: dict[int, list[list[int]]] = defaultdict(list)
    for own in np.argsort(sets.sizes, kind="stable").tolist():
        probe = _row(probed, own)
        if not probe:
            continue
        columns[own], listing, far = set(_row(sets.columns, own)), set(_row(listed, own)), set()
        for column in probe:
            together: list[int] = []
            apart = []
            for members in lists[column]:
                if not joined.connected(own, members[0]):
                    for other in members:
                        if other in far:
                            continue
                        common = sum(weights[c] for c in columns[own] & columns[other])
                        if common >= MIN_SIMILARITY * (sizes[own] + sizes[other] - common):
                            joined.merge(own, other)
                            break
                        far.add(other)
                    else:
                        apart.append(members)
                        continue
                if together:
                    together.extend(members)
                else:
                    together = members
            if column in listing:
                together.append(own)
            lists[column] = [*apart, together] if together else apart
    return np.array([joined[own] for own in range(len(sizes))], dtype=np.int64)


def _row(rows: sparse.csr_matrix, row: int) -> list[int]:
    found: list[int] = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist()
    return found


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
