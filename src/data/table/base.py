"""Defines tables: named columns, and rows that know their position in the source."""

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
"""Number of first rows that are looked at to tell what a column holds."""
CHUNK_ROWS = 1024
"""Maximum number of rows in a chunk."""
CHUNK_CHARACTERS = 1 << 24
"""Number of characters at which a chunk ends early, so that long texts do not fill the memory."""
BEGINNING: Mapping[str, Any] = {"row": 0}
"""The place before the first chunk."""


@dataclass(frozen=True)
class Row:
    """A row's values by column.

    Attributes:
        number: the line at which the row begins, or its position among the rows; counted from 1.
        values: values by column, typed as in the format: strings in CSV; strings, numbers, ... in
            JSON and Arrow.
        record: the row as it was written: the fields of CSV, or the JSON object on one line.
    """

    number: int
    values: Mapping[str, Any]
    record: Sequence[str] = ()


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows that fit into memory; the bounds depend on the input alone.

    Attributes:
        rows: the rows.
        columns: the same rows as an Arrow table of the table's schema.
        place: where the next chunk begins, as plain JSON values.
    """

    rows: list[Row]
    columns: pa.Table
    place: dict[str, Any]


class Table(ABC):
    """Rows of named columns; each call of `rows` reads them anew, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        path: the file's path; None where there is no file.
        columns: column names in the table's order; empty where there is not even a header.
        schema: schema of the chunks: typed columns for Arrow, strings for CSV, `record` for JSON.
        header: column names as they are written, where the file begins with them.
        unit: what `Row.number` counts: `line` or `row`.
        entry: word for a column in messages: `column` or `field`.
        remark: what was detected although the file's name does not say it; None if nothing.
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
        """Yield all rows, in order.

        Args:
            last: whether nobody reads the rows again; standard input is then not kept in memory.

        Raises:
            UserError: a row is malformed; the message names file and line.
        """

    def fingerprint(self) -> str:
        """Return a string that changes when the content changes; empty for standard input."""
        return "" if self.path is None else sha256_of(self.path)

    def progress(self) -> tuple[int, int | None]:
        """Return how much was read, and how much there is (None: unknown), in the same unit."""
        return 0, None

    def chunks(self, after: Mapping[str, Any] = BEGINNING) -> Iterator[Chunk]:
        """Yield the chunks that follow the place `after`.

        Raises:
            UserError: a row is malformed, or the content before `after` has changed.
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
        """Return the name of the row with this number in messages, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """Return the first rows, up to a malformed one, which a full reading will report.

        Raises:
            UserError: the very first row is malformed.
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
        """Yield all rows in chunks, as rows and as an Arrow table."""
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
        """Return a string that tells this table from others with the same records."""
        return "\0".join(self.header)

    def _changed(self) -> UserError:
        return UserError(
            f"{self.source} has changed since its first rows were predicted; put it back, or start "
            "over with resume=false"
        )
