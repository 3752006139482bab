"""Which examples repeat an earlier one, over all parts, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from src.build_corpus.digests import save_array
from src.build_corpus.layout import Building, write_json

AT_ONCE = 1 << 20
"""Digests that are compared at once, about."""


def mark_repeats(building: Building, examples: Sequence[int], runs: Sequence[int]) -> None:
    """Write each part's `dropped`: True where an earlier example of the corpus has the same text.

    Digests are compared range by range of their values; every run is sorted, so that a range is a
    slice of it. The order of parts, and of examples in a part, says which is earlier.

    Args:
        examples: of each part.
        runs: files of digests of each part.
    """
    for index, count in enumerate(examples):
        save_array(building.dropped(index), np.zeros(count, dtype=bool))
    counted = [0] * len(examples)
    ranges = max(1, -(-sum(examples) // AT_ONCE))
    edges = [(number << 64) // ranges for number in range(1, ranges)]
    mapped = [
        (part, np.load(building.keys(part, run), mmap_mode="r"))
        for part, count in enumerate(runs)
        for run in range(count)
    ]
    places = [_places(run[0], edges) for _, run in mapped]
    for number in range(ranges):
        slices = [
            (part, run[:, place[number] : place[number + 1]])
            for (part, run), place in zip(mapped, places, strict=True)
        ]
        for part, rows in _repeats(slices):
            counted[part] += len(rows)
            dropped = np.load(building.dropped(part), mmap_mode="r+")
            dropped[rows] = True
            dropped.flush()
    write_json(building.repeats, counted)
    for part, count in enumerate(runs):
        for run in range(count):
            building.keys(part, run).unlink(missing_ok=True)


def _places(digests: np.ndarray, edges: Sequence[int]) -> list[int]:
    inner = np.searchsorted(digests, np.asarray(edges, dtype=np.uint64)).tolist()
    return [0, *inner, len(digests)]


def _repeats(slices: Sequence[tuple[int, np.ndarray]]) -> list[tuple[int, np.ndarray]]:
    """`(part, rows)` of what repeats an earlier example, of digests in one range."""
    sizes = [keys.shape[1] for _, keys in slices]
    if not sum(sizes):
        return []
    first, second, row = np.concatenate([keys for _, keys in slices], axis=1)
    part = np.repeat(np.asarray([part for part, _ in slices], dtype=np.uint64), sizes)
    order = np.argsort(first)
    same = first[order][1:] == first[order][:-1]
    shared = np.zeros(len(first), dtype=bool)  # with a neighbour: few, and only they are looked at
    shared[1:] |= same
    shared[:-1] |= same
    few = order[shared]
    few = few[np.lexsort((row[few], part[few], second[few], first[few]))]
    again = (first[few][1:] == first[few][:-1]) & (second[few][1:] == second[few][:-1])
    dropped = few[1:][again]
    return [
        (int(number), row[dropped[part[dropped] == number]].astype(np.int64))
        for number in np.unique(part[dropped])
    ]
