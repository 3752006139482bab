"""Digests of examples, by which repeats are found without holding any text.

BLAKE2b with 128 bits: among 10^9 different texts, two have the same digest with a probability below
10^-20.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from src.run_folder.durable import write_durably

RUN = 1 << 20
"""Digests that are sorted at once."""
_BYTES = 16


class DigestWriter:
    """Collects digests in the order of the examples and writes them in sorted runs of `RUN`.

    A run is uint64 `(3, digests)`: first half, second half and the example's number in its part,
    sorted by the first.
    """

    def __init__(self) -> None:
        self._bytes, self._first = bytearray(), 0

    def add(self, text: bytes) -> bool:
        """Take the next example; whether a run is full."""
        self._bytes += hashlib.blake2b(text, digest_size=_BYTES).digest()
        return len(self._bytes) == RUN * _BYTES

    def write(self, path: Path) -> None:
        """Write what was collected since the last run."""
        halves = np.frombuffer(bytes(self._bytes), dtype=">u8").reshape(-1, 2)
        run = np.empty((3, len(halves)), dtype=np.uint64)
        order = np.argsort(halves[:, 0].astype(np.uint64))
        run[0], run[1] = halves[order, 0], halves[order, 1]
        run[2] = order + self._first
        self._first += len(halves)
        self._bytes.clear()
        write_durably(path, lambda scratch: _save(scratch, run))

    def __len__(self) -> int:
        return len(self._bytes) // _BYTES


def identity_digest(identity: str) -> int:
    """64 bits of an article's identity: among 10^7 articles, one in 10^12 others looks chosen."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")


def _save(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, array)


def save_array(path: Path, array: np.ndarray) -> None:
    """Write an array durably, to be memory-mapped."""
    write_durably(path, lambda scratch: _save(scratch, array))
