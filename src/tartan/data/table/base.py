"""Defines tables: named columns, and rows that know their position in the source."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from tartan.data.table.lines import Lines
from tartan.errors import UserError
from tartan.files import sha256_of

T = TypeVar("T", bound=Sized)

SAMPLE = 100
"""Number of first rows that are looked at to tell what a column holds."""
CHUNK_ROWS = 1024
"""Maximum number of rows in a chunk."""
CHUNK_CHARACTERS = 1 << 24
"""Number of characters at which a chunk ends early, so that long texts do not fill the memory."""


class Row(NamedTuple):
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


class Chunk(NamedTuple):
    """Consecutive rows that fit into memory, and the same rows as an Arrow table.

    The bounds of chunks depend on the input alone.
    """

    rows: list[Row]
    columns: pa.Table


class Table(ABC):
    """Rows of named columns; each call of `rows` reads them anew, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        path: the file's path; None where there is no file.
        lines: the lines of a text; None for other tables.
        columns: column names in the table's order; empty where there is not even a header.
        schema: schema of the chunks: typed columns for Arrow, strings for CSV, `record` for JSON.
        unit: what `Row.number` counts: `line` or `row`.
        entry: word for a column in messages: `column` or `field`.
        remark: what was detected although the file's name does not say it; None if nothing.
    """

    source: str
    path: Path | None = None
    lines: Lines | None = None
    columns: tuple[str, ...]
    schema: pa.Schema
    unit: str = "line"
    entry: str = "column"
    remark: str | None = None

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Yield all rows, in order.

        Raises:
            UserError: a row is malformed; the message names file and line.
        """

    @cached_property
    def fingerprint(self) -> str:
        """Return a string that changes when the content changes; empty for standard input."""
        return "" if self.path is None else sha256_of(self.path)

    def progress(self) -> tuple[int, int | None]:
        """Return how much was read, and how much there is (None: unknown), in the same unit."""
        return (0, None) if self.lines is None else self.lines.progress()

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in chunks; standard input is not kept in memory, nor read again.

        Raises:
            UserError: a row is malformed; the message names file and line.
        """
        if self.lines is not None:
            self.lines.are_kept = False
        rows = self.rows()
        while piece := list(until_full(rows, CHUNK_ROWS, CHUNK_CHARACTERS, _characters)):
            fields = zip(*(row.record for row in piece), strict=True)
            arrays = [pa.array(field, pa.string()) for field in fields]
            yield Chunk(piece, pa.Table.from_arrays(arrays, schema=self.schema))

    def digest(self, chunk: Chunk) -> str:
        """Return a string that changes when the content of a chunk changes."""
        records = json.dumps([self.schema.names, *(row.record for row in chunk.rows)])
        return hashlib.sha256(records.encode()).hexdigest()

    def where(self, number: int) -> str:
        """Return the name of the row with this number in messages, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """Return the first rows, up to a malformed one, which a full reading will report.

        Raises:
            UserError: the very first row is malformed.
        """
        found: list[Row] = []
        try:
            # an error keeps those before it
            found.extend(until_full(self.rows(), SAMPLE, CHUNK_CHARACTERS, _characters))
        except UserError:
            if not found:
                raise
        return found


def check_names(source: str, columns: Iterable[str]) -> None:
    """Raise `UserError` if two columns of `source` have the same name."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(f"{source} names the column {twice[0]!r} twice; rename one")


def until_full(
    items: Iterator[T], most: int, largest: int, size: Callable[[T], int] = len
) -> Iterator[T]:
    """Yield items up to a number of them, or until their sizes add up to `largest`."""
    total = 0
    for item in islice(items, most):
        yield item
        total += size(item)
        if total >= largest:
            return


def _characters(row: Row) -> int:
    return sum(map(len, row.record))
