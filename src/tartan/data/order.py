"""Random orders and choices of examples: permutations in constant memory, one for every epoch."""

from __future__ import annotations

import math

import numpy as np

from tartan.core.seeding import generator_for
from tartan.errors import UserError

SHUFFLED_WHOLE = 1 << 22
"""Up to this count a permutation is stored whole; another value changes the order of others."""
_ROUNDS = 8


class RandomOrder:
    """A random permutation of `0 .. count - 1`: beyond `SHUFFLED_WHOLE`, computed where looked at.

    That is by a generalised Feistel network on pairs of digits (Black and Rogaway, Ciphers with
    Arbitrary Finite Domains, 2002, section 5) with cycle walking.
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
            this, other = number % 2, 1 - number % 2
            halves[this] = (halves[this] + _mixed(halves[other], key) % sizes[this]) % sizes[this]
        return halves[0] + halves[1] * sizes[0]


class ExampleOrder:
    """An endless order of `count` examples: a new permutation for every epoch.

    A batch may span two epochs, so that every example is used equally often.
    """

    def __init__(self, count: int, seed: int, *names: str) -> None:
        self._count, self._seed, self._names = count, seed, names
        self._epoch = -1
        self._order: RandomOrder | None = None

    def indices(self, start: int, length: int) -> list[int]:
        """Return the examples' indices at positions `start` to `start + length` of the order."""
        taken: list[int] = []
        while len(taken) < length:
            epoch, offset = divmod(start + len(taken), self._count)
            end = min(self._count, offset + length - len(taken))
            taken += self._of_epoch(epoch).part(offset, end).tolist()
        return taken

    def _of_epoch(self, epoch: int) -> RandomOrder:
        if self._order is None or epoch != self._epoch:
            generator = generator_for(self._seed, *self._names, "order", epoch)
            self._epoch, self._order = epoch, RandomOrder(self._count, generator)
        return self._order


def choose_rows(
    available: int, size: float, train_examples: int, seed: int, option: str, source: str
) -> np.ndarray:
    """Return indices of `size` x `train_examples` of `available` rows, ascending, int `(rows,)`.

    Of two sizes with the same seed, the smaller one's rows are among the larger one's.
    """
    count = round(size * train_examples)
    if not 1 <= count <= available:
        raise UserError(
            f"{option}={size:g} asks for {count} examples ({size:g} x {train_examples} training "
            f"examples), but {source} has {available}"
        )
    return np.sort(RandomOrder(available, generator_for(seed, "corpus part")).part(0, count))


def _mixed(values: np.ndarray, key: np.uint64) -> np.ndarray:
    """Return 64 pseudo-random bits for each value (the finaliser of SplitMix64)."""
    mixed: np.ndarray = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
