"""Reads Parquet and Arrow files and data sets of `datasets`: typed columns, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from src.data.table import base
from src.data.table.base import Chunk, Row, Table, check_names
from src.data.table.formats import Format
from src.data.table.lines import LONGEST_ROW, UNREADABLE, cannot_be_read, unpacked
from src.errors import UserError, first_line

_LARGEST_UNPACKED = 1 << 30
"""Maximum size of a file that is unpacked in memory [bytes]."""
Batches = Callable[[], Iterator[pa.RecordBatch]]
"""A function that yields all rows in batches; the batches' bounds depend on the table alone."""


class ArrowTable(Table):
    """A table whose columns have Arrow types.

    Args:
        source: the file's path or the data set's name, for messages.
        schema: names and types of the columns.
        batches: see `Batches`.
        total: number of rows; None where the file does not say.

    Raises:
        UserError: two columns have the same name.
    """

    unit = "row"

    def __init__(
        self, source: str, schema: pa.Schema, batches: Batches, total: int | None = None
    ) -> None:
        self.source, self.schema, self.columns = source, schema, tuple(schema.names)
        self._batches, self._total, self._done = batches, total, 0
        check_names(f"{source}: its schema", self.columns)

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`; for nested values and times the type stands in place of the value."""
        for chunk in self.chunks():
            yield from chunk.rows

    def progress(self) -> tuple[int, int | None]:
        return self._done, self._total

    def chunks(self) -> Iterator[Chunk]:
        self._done = 0
        try:
            for batch in self._batches():
                self._check(batch)
                for start, end in pairwise(_bounds(batch)):
                    part = batch.slice(start, end - start).cast(self.schema)
                    columns = (self._values(name, part[name]) for name in self.columns)
                    rows = [
                        Row(number, dict(zip(self.columns, values, strict=True)))
                        for number, values in enumerate(zip(*columns, strict=True), self._done + 1)
                    ]
                    self._done += len(rows)
                    yield Chunk(rows, pa.Table.from_batches([part], self.schema))
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

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        if not _is_plain(column.type):
            return [column.type] * len(column)
        values: list[Any] = column.to_pylist()
        for number, value in enumerate(values, start=self._done + 1):
            if isinstance(value, str) and len(value) > LONGEST_ROW:
                raise UserError(
                    f"{self.where(number)}: column {name!r} is longer than {LONGEST_ROW:,} "
                    "characters, which no row may be"
                )
        return values


class DatasetTable(ArrowTable):
    """A split of a data set; labels that are stored as indices with names are read as names."""

    def __init__(self, name: str, rows: datasets.Dataset) -> None:
        schema, self._dataset = rows.features.arrow_schema, rows
        self._names = {
            column: feature.names
            for column, feature in rows.features.items()
            if isinstance(feature, datasets.ClassLabel)
        }

        def batches() -> Iterator[pa.RecordBatch]:
            rows.data.table.validate(full=True)  # before its rows are copied
            for table in rows.with_format("arrow").iter(base.CHUNK_ROWS):
                yield from table.combine_chunks().cast(schema).to_batches()

        super().__init__(name, schema, batches, len(rows))

    @property
    def unlabelled(self) -> bool:
        """Return whether no label is given, as in the test splits of some benchmarks."""
        labels = [row.values[column] for row in self.sample() for column in self._names]
        return bool(labels) and all(label is None for label in labels)

    @cached_property
    def fingerprint(self) -> str:
        return str(self._dataset._fingerprint)

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        """Return a column's values; a label that is not given (-1) is None."""
        values, names = super()._values(name, column), self._names.get(name)
        if names is None:
            return values
        largest = max((index for index in values if index is not None), default=0)
        if largest >= len(names):
            number = self._done + 1 + values.index(largest)
            raise UserError(f"{self.where(number)}: column {name!r} has no label {largest}")
        return [None if index is None or index < 0 else names[index] for index in values]


def open_columns(path: Path, written_as: Format) -> ArrowTable:
    """Return the table in a Parquet or Arrow IPC file; a compressed one is unpacked in memory.

    Raises:
        UserError: the file is not of this format, is damaged, or too large to be unpacked.
    """
    compression = written_as.compression
    try:
        if written_as.kind == "parquet":
            content = _content(path, compression)
            schema = parquet.read_schema(content)
            # a file may hold a long string once for many rows
            words = [field.name for field in schema if _is_string(field.type)]
            file = parquet.ParquetFile(
                content, page_checksum_verification=True, read_dictionary=words
            )
            batches = partial(_in_row_groups, file)
            table = ArrowTable(str(path), schema, batches, file.metadata.num_rows)
        else:
            batches = partial(_in_messages, path, compression)
            table = ArrowTable(str(path), _ipc_reader(path, compression).schema, batches)
    except UNREADABLE as error:
        raise cannot_be_read(f"{path} ({written_as.kind.title()})", error) from error
    table.path = path
    return table


def _in_row_groups(file: parquet.ParquetFile) -> Iterator[pa.RecordBatch]:
    for group in range(file.num_row_groups):
        found = file.metadata.row_group(group)
        room = base.CHUNK_CHARACTERS * found.num_rows // max(found.total_byte_size, 1)
        rows = max(1, min(base.CHUNK_ROWS, room))
        yield from file.iter_batches(rows, row_groups=[group])


def _bounds(batch: pa.RecordBatch) -> list[int]:
    """Return where a batch is divided, so that no part has too many rows or too long strings."""
    row = np.arange(batch.num_rows)
    size = np.cumsum(sum(map(_string_bytes, batch.columns), start=np.zeros(len(row), np.int64)))
    number = row // base.CHUNK_ROWS + size // base.CHUNK_CHARACTERS
    return sorted({0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(row)})


def _string_bytes(column: pa.Array) -> np.ndarray:
    """Return each row's number of bytes in a column of strings, and 0 in any other column."""
    kind, is_dictionary = column.type, pa.types.is_dictionary(column.type)
    if not _is_string(kind.value_type if is_dictionary else kind):
        return np.zeros(len(column), np.int64)
    lengths = compute.binary_length(column.dictionary if is_dictionary else column)
    lengths = lengths.take(column.indices) if is_dictionary else lengths
    return np.asarray(compute.fill_null(lengths, 0), np.int64)


def _in_messages(path: Path, compression: str | None) -> Iterator[pa.RecordBatch]:
    reader = _ipc_reader(path, compression)
    is_stream = isinstance(reader, pa.ipc.RecordBatchStreamReader)
    yield from reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))


def _ipc_reader(path: Path, compression: str | None) -> Any:
    """Return a reader of the file format of Arrow IPC, or of its stream format."""
    content = _content(path, compression)
    try:
        return pa.ipc.open_file(content)
    except pa.ArrowInvalid:
        content.seek(0)
        return pa.ipc.open_stream(content)


def _content(path: Path, compression: str | None) -> pa.NativeFile:
    if compression is None:
        return pa.memory_map(str(path))
    with unpacked(path, compression) as (_, file):
        content = file.read(_LARGEST_UNPACKED + 1)
    if len(content) > _LARGEST_UNPACKED:
        raise UserError(
            f"{path} takes more than {_LARGEST_UNPACKED >> 30} GiB of memory; unpack it first: "
            "the file inside is read a part at a time"
        )
    return pa.BufferReader(content)


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a type's values are strings, numbers or truth values in Python."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (
        pa.types.is_string_view, pa.types.is_null, pa.types.is_integer, pa.types.is_floating,
        pa.types.is_boolean,
    )  # fmt: skip
    return _is_string(kind) or any(test(kind) for test in tests)


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
