"""Reads Parquet and Arrow files and data sets of `datasets`: typed columns, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from pyarrow import parquet

from src.data.table import base
from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, UNREADABLE, cannot_be_read, unpacked
from src.errors import UserError

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
        twice = [name for name, count in Counter(schema.names).items() if count > 1]
        if twice:
            raise UserError(f"{source}: it has two columns {twice[0]!r}; rename one")

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`; for nested values and times the type stands in place of the value."""
        for rows, _ in self._pieces():
            yield from rows

    def progress(self) -> tuple[int, int | None]:
        return self._done, self._total

    def _pieces(self) -> Iterator[tuple[list[Row], pa.Table]]:
        self._done = 0
        try:
            for batch in self._batches():
                for start in range(0, batch.num_rows, base.CHUNK_ROWS):
                    part = batch.slice(start, base.CHUNK_ROWS)
                    rows = self._rows(part)
                    self._done += len(rows)
                    yield rows, pa.Table.from_batches([part], self.schema)
        except UNREADABLE as error:
            raise cannot_be_read(self.source, error, f" (after row {self._done})") from error

    def _rows(self, batch: pa.RecordBatch) -> list[Row]:
        columns = zip(*(self._values(name, batch[name]) for name in self.columns), strict=True)
        return [
            Row(number, dict(zip(self.columns, values, strict=True)))
            for number, values in enumerate(columns, start=self._done + 1)
        ]

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        if not _is_plain(column.type):
            return [column.type] * len(column)
        try:
            values: list[Any] = column.to_pylist()
        except UnicodeDecodeError as error:
            rows = f"rows {self._done + 1} to {self._done + len(column)}"
            raise UserError(f"{self.source}, {rows}: column {name!r} is not UTF-8") from error
        for number, value in enumerate(values, start=self._done + 1):
            if isinstance(value, str) and len(value) > LONGEST_ROW:
                raise UserError(
                    f"{self.where(number)}: column {name!r} is longer than {LONGEST_ROW >> 20} "
                    "MiB, which no row may be"
                )
        return values

    def _beginning(self) -> str:
        return self.fingerprint()


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
            for table in rows.with_format("arrow").iter(base.CHUNK_ROWS):
                yield from table.combine_chunks().cast(schema).to_batches()

        super().__init__(name, schema, batches, len(rows))

    @property
    def unlabelled(self) -> bool:
        """Return whether no label is given, as in the test splits of some benchmarks."""
        labels = [row.values[column] for row in self.sample() for column in self._names]
        return bool(labels) and all(label is None for label in labels)

    def fingerprint(self) -> str:
        return str(self._dataset._fingerprint)

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        """Return a column's values; a label that is not given (-1) is None."""
        values, names = super()._values(name, column), self._names.get(name)
        if names is None:
            return values
        return [None if index is None or index < 0 else names[index] for index in values]


def open_parquet(path: Path, compression: str | None) -> ArrowTable:
    """Return the table in a Parquet file, plain or compressed (then unpacked in memory).

    Raises:
        UserError: the file is not Parquet, or is damaged.
    """
    try:
        content = _content(path, compression)
        file = parquet.ParquetFile(content, page_checksum_verification=True)
    except UNREADABLE as error:
        raise cannot_be_read(f"{path} (Parquet)", error) from error

    def batches() -> Iterator[pa.RecordBatch]:
        for group in range(file.num_row_groups):
            found = file.metadata.row_group(group)
            room = base.CHUNK_CHARACTERS * found.num_rows // max(found.total_byte_size, 1)
            rows = max(1, min(base.CHUNK_ROWS, room))
            yield from file.iter_batches(rows, row_groups=[group])

    table = ArrowTable(str(path), file.schema_arrow, batches, file.metadata.num_rows)
    table.path = path
    return table


def open_ipc(path: Path, compression: str | None) -> ArrowTable:
    """Return the table in an Arrow IPC file, of the file or stream format, plain or compressed.

    Raises:
        UserError: the file is not Arrow IPC, or is damaged.
    """

    def opened() -> Any:
        content = _content(path, compression)
        try:
            return pa.ipc.open_file(content)
        except pa.ArrowInvalid:
            content.seek(0)
            return pa.ipc.open_stream(content)

    def batches() -> Iterator[pa.RecordBatch]:
        reader = opened()
        is_stream = isinstance(reader, pa.ipc.RecordBatchStreamReader)
        yield from reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))

    try:
        table = ArrowTable(str(path), opened().schema, batches)
    except UNREADABLE as error:
        raise cannot_be_read(f"{path} (Arrow)", error) from error
    table.path = path
    return table


def _content(path: Path, compression: str | None) -> pa.NativeFile:
    if compression is None:
        return pa.memory_map(str(path))
    with unpacked(path, compression) as (_, file):
        return pa.BufferReader(file.read())


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a type's values are strings, numbers or truth values in Python."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null,
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean,
    )  # fmt: skip
    return any(test(kind) for test in tests)
