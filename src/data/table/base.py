"""A table: named columns, and rows that know where they are."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import pyarrow as pa

from src.errors import UserError

SAMPLE = 100
"""Rows that are looked at to tell what a column holds."""
CHUNK_ROWS = 1024
"""Rows of a chunk at most."""
CHUNK_CHARACTERS = 1 << 24
"""A chunk also ends where it reaches this, so that long texts fill no memory."""


@dataclass(frozen=True)
class Row:
    """A row's values by column.

    Attributes:
        number: the line it begins at, or its place among the rows; either counted from 1.
        values: as the format has them: text in CSV; text, numbers, ... in JSON and Arrow.
        record: all of the row as it was written: fields of CSV, an object of JSON on one line;
            None in Arrow, where the chunk has the columns.
    """

    number: int
    values: Mapping[str, Any]
    record: Sequence[str] | str | None = None

    @property
    def content(self) -> str:
        """The record as one string."""
        return self.record if isinstance(self.record, str) else "\0".join(self.record or ())


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, as many as fit into memory; the bounds depend on the input alone.

    Attributes:
        rows: the rows.
        place: where the next chunk begins: plain JSON values.
        columns: the rows as Arrow has them, with their types; None in text formats.
    """

    rows: list[Row]
    place: dict[str, Any]
    columns: pa.Table | None = None


class Table(ABC):
    """Rows of named columns; they are read anew by each call of `rows`, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        columns: names in the table's order; empty where there is not even a header.
        header: names as they are written, where the file begins with them.
        unit: what a row's number counts, `line` or `row`.
        entry: what a value is called in a message, `column` or `field`.
        remark: what was detected and not said by the file's name; None if nothing.
    """

    source: str
    columns: tuple[str, ...]
    header: Sequence[str] = ()
    unit: ClassVar[str] = "line"
    entry: ClassVar[str] = "column"
    remark: str | None = None

    @abstractmethod
    def rows(self, last: bool = False) -> Iterator[Row]:
        """All rows, in order.

        Args:
            last: whether nobody reads them again, which lets standard input stream.

        Raises:
            UserError: a row is malformed; names file and line.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the content changes."""

    @abstractmethod
    def progress(self) -> tuple[int, int | None]:
        """How much was read, and how much there is (None: nobody knows), in any unit."""

    def chunks(self, after: Mapping[str, Any] | None = None) -> Iterator[Chunk]:
        """The chunks that follow the place `after`; all of them if it is None.

        Raises:
            UserError: a row is malformed, or what comes before `after` has changed.
        """
        before = 0 if after is None else int(after["row"])
        digest = hashlib.sha256("\0".join(self.header).encode())
        kept: list[Row] = []
        count = size = 0
        for row in self.rows(last=True):
            content = row.content
            digest.update(f"\n{content}".encode())
            count += 1
            if count <= before:
                if count == before and after and digest.hexdigest() != after["digest"]:
                    raise self.changed()
                continue
            kept.append(row)
            size += len(content)
            if len(kept) == CHUNK_ROWS or size >= CHUNK_CHARACTERS:
                yield Chunk(kept, {"row": count, "digest": digest.hexdigest()})
                kept, size = [], 0
        if count < before:
            raise self.changed()
        if kept:
            yield Chunk(kept, {"row": count, "digest": digest.hexdigest()})

    def where(self, number: int) -> str:
        """How a message names the row with this number, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """The first rows, up to one that is malformed, which reading all of them will come to.

        Raises:
            UserError: the very first is.
        """
        found: list[Row] = []
        size = 0
        try:
            for row in islice(self.rows(), SAMPLE):
                found.append(row)
                size += len(row.content)
                if size >= CHUNK_CHARACTERS:
                    break
        except UserError:
            if not found:
                raise
        return found

    def changed(self) -> UserError:
        """What is said of a table that is not the one that was begun."""
        return UserError(
            f"{self.source} has changed since its first rows were predicted; put it back, or start "
            "over with resume=false"
        )
