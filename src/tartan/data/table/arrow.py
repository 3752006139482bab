"""Reads Parquet and Arrow files and data sets of `datasets`: typed columns, batch by batch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from tartan.data.table import base
from tartan.data.table.base import Chunk, Row, Table, check_names
from tartan.data.table.formats import Format
from tartan.data.table.lines import LONGEST_ROW, UNREADABLE, cannot_be_read, unpacked
from tartan.errors import UserError, first_line
from tartan.files import sha256_of

_LARGEST_UNPACKED = 1 << 30
"""Maximum size of a file that is unpacked in memory [bytes]."""
_PLAIN = re.compile(
    r"(dictionary<values=)?(large_)?(string|u?int\d|halffloat|float|double|bool|null)"
)
"""Beginning of the names of types whose values are strings, numbers or truth values in Python."""
Batches = Callable[[], Iterator[pa.RecordBatch]]
"""A function that yields all rows in batches; the batches' bounds depend on the table alone."""


class ArrowTable(Table):
    """A table whose columns have Arrow types.

    Args:
        source: the file's path or the data set's name, for messages.
        schema: names and types of the columns.
        batches: see `Batches`.
        digest: computes the table's fingerprint.

    Attributes:
        total: number of rows; None where the file does not say.
        labels: names of labels, by the columns that hold their indices; -1 is no label.

    Raises:
        UserError: two columns have the same name.
    """

    unit = "row"
    total: int | None = None

    def __init__(
        self, source: str, schema: pa.Schema, batches: Batches, digest: Callable[[], str]
    ) -> None:
        self.source, self.schema, self.columns = source, schema, tuple(schema.names)
        self.labels: dict[str, Sequence[str]] = {}
        self._batches, self._digest, self._done = batches, digest, 0
        check_names(f"{source}: its schema", self.columns)

    @cached_property
    def fingerprint(self) -> str:
        try:
            return self._digest()
        except UNREADABLE as error:
            raise cannot_be_read(self.source, error) from error

    @property
    def unlabelled(self) -> bool:
        """Return whether no label is given, as in the test splits of some benchmarks."""
        labels = [row.values[column] for row in self.sample() for column in self.labels]
        return bool(labels) and all(label is None for label in labels)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; for nested values and times the type stands in place of the value."""
        for chunk in self.chunks():
            yield from chunk.rows

    def progress(self) -> tuple[int, int | None]:
        return self._done, self.total

    def chunks(self) -> Iterator[Chunk]:
        self._done = 0
        try:
            for batch in self._batches():
                self._check(batch)
                for part in self._parts(batch):
                    columns = (self._values(name, part[name]) for name in self.columns)
                    rows = [
                        Row(number, dict(zip(self.columns, values, strict=True)))
                        for number, values in enumerate(zip(*columns, strict=True), self._done + 1)
                    ]
                    self._done += len(rows)
                    yield Chunk(rows, pa.Table.from_batches([part]))
        except UNREADABLE as error:
            raise cannot_be_read(self.source, error, f" (after row {self._done})") from error

    def digest(self, chunk: Chunk) -> str:
        return self.fingerprint

    def _check(self, batch: pa.RecordBatch) -> None:
        """Check values that no reader of Arrow checks; a wrong position would end the process."""
        for name in self.columns:
            try:
                batch[name].validate(full=True)
            except pa.ArrowInvalid as error:
                flaw = "not UTF-8" if "UTF8" in str(error) else f"damaged ({first_line(error)})"
                rows = f"rows {self._done + 1} to {self._done + batch.num_rows}"
                raise UserError(f"{self.source}, {rows}: column {name!r} is {flaw}") from error

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Divide a batch so that no part has too many rows or too long strings."""
        size = _characters(batch)
        if size.max(initial=0) > LONGEST_ROW:
            place = self.where(self._done + 1 + int(size.argmax()))
            raise UserError(f"{place}: longer than {LONGEST_ROW:,} characters, which no row may be")
        row = np.arange(len(size))
        number = row // base.CHUNK_ROWS + np.cumsum(size) // base.CHUNK_CHARACTERS
        for rows in filter(len, np.split(row, np.flatnonzero(np.diff(number)) + 1)):
            yield batch.slice(rows[0], len(rows)).cast(self.schema)

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        if not _PLAIN.match(str(column.type)):
            return [column.type] * len(column)
        values: list[Any] = column.to_pylist()
        if (names := self.labels.get(name)) is None:
            return values
        largest = max((value for value in values if isinstance(value, int)), default=-1)
        if largest >= len(names):
            number = self._done + 1 + values.index(largest)
            raise UserError(f"{self.where(number)}: column {name!r} has no label {largest}")
        return [names[v] if isinstance(v, int) and v >= 0 else None for v in values]


def table_of_dataset(name: str, rows: datasets.Dataset) -> ArrowTable:
    """Return a data set as a table; labels that it stores as indices are read as their names."""
    schema, features = rows.features.arrow_schema, rows.features.items()
    table = ArrowTable(name, schema, partial(_batches_of, rows), partial(content_digest, rows))
    table.total = len(rows)
    table.labels = {name: f.names for name, f in features if isinstance(f, datasets.ClassLabel)}
    return table


def content_digest(rows: datasets.Dataset) -> str:
    """Return a checksum of a data set's types and values.

    Its own fingerprint is random after a `map` or `filter` whose function cannot be pickled.
    """
    digest = hashlib.sha256(str(rows.features).encode())
    for batch in _batches_of(rows):
        digest.update(batch.serialize())
    return digest.hexdigest()


def _batches_of(rows: datasets.Dataset) -> Iterator[pa.RecordBatch]:
    rows.data.table.validate(full=True)  # before its rows are copied
    for table in rows.with_format("arrow").iter(base.CHUNK_ROWS):
        yield from table.combine_chunks().cast(rows.features.arrow_schema).to_batches()


def open_columns(path: Path, written_as: Format) -> ArrowTable:
    """Return the table in a Parquet or Arrow IPC file; a compressed one is unpacked in memory.

    Raises:
        UserError: the file is not of this format, is damaged, or too large to be unpacked.
    """
    digest = partial(sha256_of, path)
    try:
        content = _content(path, written_as.compression)
        if written_as.kind == "arrow":
            return ArrowTable(str(path), *_messages(content), digest)
        schema = parquet.read_schema(pa.BufferReader(content))
        # a file may hold a long string once for many rows
        words = [field.name for field in schema if _is_string(field.type)]
        file = parquet.ParquetFile(
            pa.BufferReader(content), page_checksum_verification=True, read_dictionary=words
        )
        table = ArrowTable(str(path), schema, partial(_in_row_groups, file), digest)
        table.total = file.metadata.num_rows
        return table
    except UNREADABLE as error:
        raise cannot_be_read(f"{path} ({written_as.kind.title()})", error) from error


def _in_row_groups(file: parquet.ParquetFile) -> Iterator[pa.RecordBatch]:
    for group in range(file.num_row_groups):
        found = file.metadata.row_group(group)
        room = base.CHUNK_CHARACTERS * found.num_rows // max(found.total_byte_size, 1)
        rows = max(1, min(base.CHUNK_ROWS, room))
        yield from file.iter_batches(rows, row_groups=[group])


def _messages(content: pa.Buffer) -> tuple[pa.Schema, Batches]:
    """Return the schema and the batches of a file in Arrow's file format, or its stream format."""
    try:
        file = pa.ipc.open_file(content)
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(content).schema, lambda: iter(pa.ipc.open_stream(content))
    return file.schema, lambda: map(file.get_batch, range(file.num_record_batches))


def _content(path: Path, compression: str | None) -> pa.Buffer:
    if compression is None:
        return pa.memory_map(str(path)).read_buffer()
    with unpacked(path, compression) as (_, file):
        content = file.read(_LARGEST_UNPACKED + 1)
    if len(content) > _LARGEST_UNPACKED:
        raise UserError(
            f"{path} takes more than {_LARGEST_UNPACKED >> 30} GiB of memory; unpack it first: "
            "the file inside is read a part at a time"
        )
    return pa.py_buffer(content)


def _characters(batch: pa.RecordBatch) -> np.ndarray:
    """Return the number of characters that each row has in columns of strings."""
    size = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        words = column.dictionary if pa.types.is_dictionary(column.type) else column
        if _is_string(words.type):
            lengths = compute.utf8_length(words)
            lengths = lengths if words is column else lengths.take(column.indices)
            size += np.asarray(compute.fill_null(lengths, 0))
    return size


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
