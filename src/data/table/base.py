"""A table: named columns, and rows that know where they are."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from src.errors import UserError
from src.files.checksum import sha256_of

SAMPLE = 100
"""Rows that are looked at to tell what a column holds."""
CHUNK_ROWS = 1024
"""Rows of a chunk at most."""
CHUNK_CHARACTERS = 1 << 24
"""A chunk also ends where it reaches this, so that long texts fill no memory."""
BEGINNING: Mapping[str, Any] = {"row": 0}
"""The place before the first chunk."""


@dataclass(frozen=True)
class Row:
    """A row's values by column.

    Attributes:
        number: the line it begins at, or its place among the rows; either counted from 1.
        values: as the format has them: text in CSV; text, numbers, ... in JSON and Arrow.
        record: the row as it was written: fields of CSV, or the one object of JSON on one line.
    """

    number: int
    values: Mapping[str, Any]
    record: Sequence[str] = ()


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, as many as fit into memory; the bounds depend on the input alone.

    Attributes:
        rows: the rows.
        columns: the same, by the table's schema.
        place: where the next chunk begins: plain JSON values.
    """

    rows: list[Row]
    columns: pa.Table
    place: dict[str, Any]


class Table(ABC):
    """Rows of named columns; they are read anew by each call of `rows`, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        path: of the file; None where there is none.
        columns: names in the table's order; empty where there is not even a header.
        schema: of the chunks: typed columns of Arrow, text ones of CSV, `record` of JSON.
        header: names as they are written, where the file begins with them.
        unit: what a row's number counts, `line` or `row`.
        entry: what a value is called in a message, `column` or `field`.
        remark: what was detected and not said by the file's name; None if nothing.
    """

    source: str
    path: Path | None = None
    columns: tuple[str, ...]
    schema: pa.Schema
    header: Sequence[str] = ()
    unit: str = "line"
    entry: str = "column"
    remark: str | None = None

    @abstractmethod
    def rows(self, last: bool = False) -> Iterator[Row]:
        """All rows, in order.

        Args:
            last: whether nobody reads them again, which lets standard input stream.

        Raises:
            UserError: a row is malformed; names file and line.
        """

    def fingerprint(self) -> str:
        """Changes when the content changes; empty for standard input."""
        return "" if self.path is None else sha256_of(self.path)

    def progress(self) -> tuple[int, int | None]:
        """Return how much was read, and how much there is (None: nobody knows), in any unit."""
        return 0, None

    def chunks(self, after: Mapping[str, Any] = BEGINNING) -> Iterator[Chunk]:
        """The chunks that follow the place `after`.

        Raises:
            UserError: a row is malformed, or what comes before `after` has changed.
        """
        digest, done = hashlib.sha256(self._beginning().encode()), 0
        for rows, columns in self._pieces():
            start, done = done, done + len(rows)
            digest.update("".join("\n" + "\0".join(row.record) for row in rows).encode())
            place = {"row": done, "digest": digest.hexdigest()}
            if start >= after["row"]:
                yield Chunk(rows, columns, place)
            elif done >= after["row"] and place != after:
                raise self._changed()
        if done < after["row"]:
            raise self._changed()

    def where(self, number: int) -> str:
        """Return how a message names the row with this number, e.g. `labels.csv, line 3`."""
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
                size += sum(map(len, row.record))
                if size >= CHUNK_CHARACTERS:
                    break
        except UserError:
            if not found:
                raise
        return found

    def _pieces(self) -> Iterator[tuple[list[Row], pa.Table]]:
        """All rows in chunks."""
        rows: list[Row] = []
        size = 0
        for row in self.rows(last=True):
            rows.append(row)
            size += sum(map(len, row.record))
            if len(rows) == CHUNK_ROWS or size >= CHUNK_CHARACTERS:
                yield rows, self._columns_of(rows)
                rows, size = [], 0
        if rows:
            yield rows, self._columns_of(rows)

    def _columns_of(self, rows: Sequence[Row]) -> pa.Table:
        fields = zip(*(row.record for row in rows), strict=True)
        return pa.Table.from_arrays([pa.array(f, pa.string()) for f in fields], schema=self.schema)

    def _beginning(self) -> str:
        """Return what tells the table from others with the same records."""
        return "\0".join(self.header)

    def _changed(self) -> UserError:
        return UserError(
            f"{self.source} has changed since its first rows were predicted; put it back, or start "
            "over with resume=false"
        )
