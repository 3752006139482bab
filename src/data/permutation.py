"""A random order of many examples in constant memory: any part of it can be had at any time."""

from __future__ import annotations

import math

import numpy as np

SHUFFLED_WHOLE = 1 << 22
"""Counts up to this one (4,194,304) are shuffled whole, which takes 32 MiB; larger ones are not.

It decides which examples a seed stands for: another value changes runs on larger sources.
"""
_ROUNDS = 8
_MIXING = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class RandomOrder:
    """A permutation of `0 .. count - 1`, drawn with the generator.

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
        """Positions `start` to `stop` of the order, at most `count`: int64 `(stop - start,)`."""
        if self._whole is not None:
            return self._whole[start:stop]
        places = self._step(np.arange(start, min(stop, self._count), dtype=np.uint64))
        outside = np.flatnonzero(places >= self._count)
        while len(outside):  # the network permutes a little more than `count`: walk on
            places[outside] = self._step(places[outside])
            outside = outside[places[outside] >= self._count]
        return places.astype(np.int64)

    def _step(self, places: np.ndarray) -> np.ndarray:
        """One pass through the network: a bijection of `0 .. left * right - 1`."""
        sizes = np.uint64(self._left), np.uint64(self._right)
        halves: list[np.ndarray] = [places % sizes[0], places // sizes[0]]
        for number, key in enumerate(self._keys):
            own, other = number % 2, 1 - number % 2
            halves[own] = (halves[own] + _mixed(halves[other], key) % sizes[own]) % sizes[own]
        return halves[0] + halves[1] * sizes[0]


def _mixed(values: np.ndarray, key: np.uint64) -> np.ndarray:
    """Pseudo-random 64 bits for each value (the finaliser of SplitMix64)."""
    mixed: np.ndarray = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + key
    for shift, factor in zip((30, 27), _MIXING, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed
