"""Rows of a table in chunks: as many at a time as memory holds, with all that they came with.

A chunk's bounds are a function of the input alone, so that a reading that was stopped and begun
again meets the same chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, TypeVar

from src.predict.lines import Lines

R = TypeVar("R")

CHUNK_ROWS = 1024
"""Rows of a chunk at most: what is written, and lost by a kill, at once."""
CHUNK_CHARACTERS = 1 << 24
"""A chunk of lines also ends where it reaches this, so that long texts fill no memory."""


@dataclass(frozen=True)
class Chunk(Generic[R]):
    """Consecutive rows.

    Attributes:
        texts: of each row.
        pairs: a second text of each, where such are read.
        rows: the rows as their format has them.
        place: where the next chunk begins: plain JSON values.
    """

    texts: list[str]
    pairs: list[str] | None
    rows: R
    place: dict[str, Any]


class Reader(Protocol[R]):
    """A table that is read once, from its beginning or from a place."""

    def chunks(self, after: dict[str, Any] | None) -> Iterator[Chunk[R]]:
        """The chunks that follow the place `after`; all of them if it is None.

        Raises:
            UserError: a row is not as it has to be (names it), or what comes before `after` has
                changed.
        """
        ...

    def progress(self) -> tuple[int, int | None]:
        """How much of the input is read, and how much there is (None: nobody knows)."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def chunks_of(
    lines: Lines, rows: Iterator[tuple[R, int, str, str | None]]
) -> Iterator[Chunk[list[R]]]:
    """Rows that are read from `lines` one after the other, in chunks.

    Args:
        rows: each row, its characters, its text and, where such are read, its second text.
    """
    kept: list[R] = []
    texts: list[str] = []
    pairs: list[str] = []
    size = 0

    def chunk() -> Chunk[list[R]]:
        return Chunk(texts, pairs or None, kept, asdict(lines.place))

    for row, characters, text, pair in rows:
        kept.append(row)
        texts.append(text)
        if pair is not None:
            pairs.append(pair)
        size += characters
        if len(kept) == CHUNK_ROWS or size >= CHUNK_CHARACTERS:
            yield chunk()
            kept, texts, pairs, size = [], [], [], 0
    if kept:
        yield chunk()
