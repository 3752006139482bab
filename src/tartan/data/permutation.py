"""Random permutations of many examples in constant memory, readable in any part."""

from __future__ import annotations

import math

import numpy as np

SHUFFLED_WHOLE = 1 << 22
"""Up to this count (4,194,304) a permutation is stored whole, which takes 32 MiB.

Another value changes the order of examples in runs on larger sources.
"""
_ROUNDS = 8
_MIXING = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class RandomOrder:
    """A random permutation of `0 .. count - 1`.

    Up to `SHUFFLED_WHOLE` it is `generator.permutation(count)`. Beyond, it is a generalised Feistel
    network on pairs of digits (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002,
    section 5) with cycle walking: a bijection that is computed where it is looked at.
    """

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self._count = count
        self._whole: np.ndarray | None = None
        if count <= SHUFFLED_WHOLE:
            self._whole = generator.permutation(count)
            return
        self._left = math.isqrt(count - 1) + 1
        self._right = -(-count // self._left)
        self._keys = generator.integers(0, 1 << 63, _ROUNDS, dtype=np.uint64)

    def part(self, start: int, stop: int) -> np.ndarray:
        """Return positions `start` to `stop` of the permutation, int64 `(stop - start,)`."""
        if self._whole is not None:
            return self._whole[start:stop]
        places = self._step(np.arange(start, min(stop, self._count), dtype=np.uint64))
        outside = np.flatnonzero(places >= self._count)
        while len(outside):  # the network permutes a little more than `count`: walk on
            places[outside] = self._step(places[outside])
            outside = outside[places[outside] >= self._count]
        return places.astype(np.int64)

    def _step(self, places: np.ndarray) -> np.ndarray:
        """Apply the network once: a bijection of `0 .. left * right - 1`."""
        sizes = np.uint64(self._left), np.uint64(self._right)
        halves: list[np.ndarray] = [places % sizes[0], places // sizes[0]]
        for number, key in enumerate(self._keys):
            own, other = number % 2, 1 - number % 2
            halves[own] = (halves[own] + _mixed(halves[other], key) % sizes[own]) % sizes[own]
        return halves[0] + halves[1] * sizes[0]


def _mixed(values: np.ndarray, key: np.uint64) -> np.ndarray:
    """Return 64 pseudo-random bits for each value (the finaliser of SplitMix64)."""
    mixed: np.ndarray = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + key
    for shift, factor in zip((30, 27), _MIXING, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed
