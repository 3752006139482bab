"""Defines tables: rows of named columns, each with its place in the source."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd
import pyarrow as pa

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
        number: the line at which the row begins, or its position among the rows; from 1.
        values: values by column: strings in CSV; strings, numbers, ... in JSON and Arrow.
        place: source and number for messages, e.g. `labels.csv, line 3`.
        record: the row as it was written: the fields of CSV, or the JSON object.
    """

    number: int
    values: Mapping[str, Any]
    place: str
    record: Sequence[str] = ()


class Chunk(NamedTuple):
    """Consecutive rows that fit into memory, and the same rows as an Arrow table."""

    rows: list[Row]
    columns: pa.Table

    def digest(self) -> str:
        """Return a checksum of the content."""
        with pa.BufferOutputStream() as sink:
            with pa.ipc.new_stream(sink, self.columns.schema) as stream:
                stream.write_table(self.columns)
            return hashlib.sha256(sink.getvalue()).hexdigest()


class Table(ABC):
    """Rows of named columns; each call of `rows` reads them anew, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        path: the file's path; None where there is no file.
        columns: column names; of JSON lines, those of the first rows. Empty without a header.
        schema: schema of the chunks: typed columns for Arrow, strings for CSV, `record` for JSON.
        unit: what `Row.number` counts: `line` or `row`.
    """

    source: str
    path: Path | None = None
    columns: tuple[str, ...] = ()
    schema: pa.Schema
    unit: str = "line"

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Yield all rows, in order."""

    @cached_property
    def fingerprint(self) -> str:
        """A string that changes when the content changes."""
        assert self.path is not None
        return sha256_of(self.path)

    def progress(self) -> tuple[int, int | None]:
        """Return how much was read, and how much there is (None: unknown), in the same unit."""
        return 0, None

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in chunks, whose bounds depend on the input alone."""
        rows = self.rows()
        while piece := list(until_full(rows, CHUNK_ROWS, CHUNK_CHARACTERS, _characters)):
            fields = zip(*(row.record for row in piece), strict=True)
            arrays = [pa.array(field, pa.string()) for field in fields]
            yield Chunk(piece, pa.Table.from_arrays(arrays, schema=self.schema))

    def place(self, number: int) -> str:
        """Return the name of the row with this number in messages, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """Return the first rows."""
        return list(until_full(self.rows(), SAMPLE, CHUNK_CHARACTERS, _characters))

    def names_in_sample(self) -> tuple[str, ...]:
        """Return the columns of the first rows, where each row names its own."""
        return tuple(dict.fromkeys(name for row in self.sample() for name in row.values))


class MemoryTable(Table):
    """A table whose rows a program passes as Python objects.

    Args:
        rows: mappings of columns to values; or tuples of a text, perhaps a second one, and a label.
        source: name of the rows in messages, e.g. `train`.
    """

    unit = "row"

    def __init__(self, rows: Iterable[Any], source: str) -> None:
        self.source = source
        self._rows = [self._row(number, row) for number, row in enumerate(rows, start=1)]
        self.columns = self.names_in_sample()

    def rows(self) -> Iterator[Row]:
        return iter(self._rows)

    @cached_property
    def fingerprint(self) -> str:
        rows = (
            json.dumps(dict(sorted(row.values.items())), default=repr, skipkeys=True)
            for row in self._rows
        )
        return hashlib.sha256("".join(rows).encode()).hexdigest()

    def _row(self, number: int, row: Any) -> Row:
        if isinstance(row, tuple | list) and len(row) in (2, 3):
            names = ("text", "label") if len(row) == 2 else ("text", "text_pair", "label")
            row = dict(zip(names, row, strict=True))
        if not isinstance(row, Mapping):
            raise UserError(
                f"{self.place(number)}: expected a mapping with a text and a label, or a tuple of "
                f"them, got {row!r:.80}"
            )
        values = {str(name): _python_value(value) for name, value in row.items()}
        return Row(number, values, self.place(number))


class JoinedTables(Table):
    """Several tables, one after the other; rows are numbered through."""

    unit = "row"

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.columns = tuple(dict.fromkeys(chain(*(table.columns for table in tables))))
        self.source = ", ".join(table.source for table in tables)

    def rows(self) -> Iterator[Row]:
        rows = chain.from_iterable(table.rows() for table in self.tables)
        return (row._replace(number=number) for number, row in enumerate(rows, start=1))

    @cached_property
    def fingerprint(self) -> str:
        digests = ":".join(table.fingerprint for table in self.tables)
        return hashlib.sha256(digests.encode()).hexdigest()


class SelectedRows(Table):
    """The rows of a table that have one of some values in a column."""

    def __init__(self, table: Table, column: str, values: Sequence[str]) -> None:
        self.source, self.columns, self.unit = table.source, table.columns, table.unit
        self._table, self._column, self._values = table, column, values

    def rows(self) -> Iterator[Row]:
        return (row for row in self._table.rows() if row.values.get(self._column) in self._values)

    @cached_property
    def fingerprint(self) -> str:
        return f"{self._table.fingerprint}:{self._column} in {', '.join(self._values)}"


def check_names(source: str, columns: Iterable[str]) -> None:
    """Raise `UserError` if two columns of `source` have the same name."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(f"{source} names the column {twice[0]!r} twice")


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


def _python_value(value: Any) -> Any:
    """Return a NumPy or torch number as a Python number, pandas' missing value as None."""
    if value is pd.NA or value is pd.NaT:
        return None
    return value.item() if getattr(value, "ndim", None) == 0 else value
