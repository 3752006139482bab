"""Parquet and Arrow files, and data sets of `datasets`: columns with types, read in batches."""

from __future__ import annotations

import hashlib
import io
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from pyarrow import parquet

from src.data.table import base
from src.data.table.base import Chunk, Row, Table
from src.data.table.lines import LONGEST_ROW, cannot_be_read, unpacked
from src.errors import UserError
from src.files.checksum import sha256_of

_FAILURES = (pa.ArrowException, OSError, EOFError, zlib.error)


class ArrowTable(Table):
    """Columns with types.

    Attributes:
        schema: of them.
        total: rows there are; None where the file does not say.
    """

    unit = "row"
    schema: pa.Schema
    total: int | None = None
    _done = 0

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`; values of nested types and times are given by their type."""
        for chunk in self._read(None):
            yield from chunk.rows

    def chunks(self, after: Mapping[str, Any] | None = None) -> Iterator[Chunk]:
        digest = hashlib.sha256(f"{self.fingerprint()}".encode()).hexdigest()
        if after is not None and after["digest"] != digest:
            raise self.changed()
        for chunk in self._read(after):
            yield Chunk(chunk.rows, {**chunk.place, "digest": digest}, chunk.columns)

    def progress(self) -> tuple[int, int | None]:
        return self._done, self.total

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in batches whose bounds depend on the table alone."""

    def _set_schema(self, schema: pa.Schema) -> None:
        twice = [name for name, count in Counter(schema.names).items() if count > 1]
        if twice:
            raise UserError(f"{self.source}: it has two columns {twice[0]!r}; rename one")
        self.schema, self.columns = schema, tuple(schema.names)

    def _read(self, after: Mapping[str, Any] | None) -> Iterator[Chunk]:
        before, self._done = 0 if after is None else int(after["row"]), 0
        try:
            for batch in self._batches():
                for start in range(0, batch.num_rows, base.CHUNK_ROWS):
                    part = batch.slice(start, base.CHUNK_ROWS)
                    first, self._done = self._done, self._done + part.num_rows
                    if self._done > before:
                        table = pa.Table.from_batches([part], self.schema)
                        yield Chunk(self._rows(part, first), {"row": self._done}, table)
        except _FAILURES as error:
            raise cannot_be_read(self.source, error, f" (after row {self._done})") from error

    def _rows(self, batch: pa.RecordBatch, before: int) -> list[Row]:
        columns = [self._values(name, batch[name], before) for name in self.columns]
        numbers = range(before + 1, before + batch.num_rows + 1)
        return [
            Row(number, dict(zip(self.columns, values, strict=True)))
            for number, values in zip(numbers, zip(*columns, strict=True), strict=True)
        ]

    def _values(self, name: str, column: pa.Array, before: int) -> list[Any]:
        if not _is_plain(column.type):
            return [column.type] * len(column)
        try:
            values: list[Any] = column.to_pylist()
        except UnicodeDecodeError as error:
            rows = f"rows {before + 1} to {before + len(column)}"
            raise UserError(f"{self.source}, {rows}: column {name!r} is not UTF-8") from error
        for number, value in enumerate(values, start=before + 1):
            if isinstance(value, str) and len(value) > LONGEST_ROW:
                raise UserError(
                    f"{self.where(number)}: column {name!r} is longer than {LONGEST_ROW >> 20} "
                    "MiB, which no row may be"
                )
        return values


class ParquetTable(ArrowTable):
    """A Parquet file, plain or compressed as a whole (then unpacked in memory).

    Raises:
        UserError: it is none, or damaged.
    """

    def __init__(self, path: Path, compression: str | None = None) -> None:
        self.source, self._path = str(path), path
        try:
            self._file = parquet.ParquetFile(
                _content(path, compression), page_checksum_verification=True
            )
            self._set_schema(self._file.schema_arrow)
        except _FAILURES as error:
            raise cannot_be_read(f"{path} (Parquet)", error) from error
        self.total = self._file.metadata.num_rows

    def fingerprint(self) -> str:
        return sha256_of(self._path)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for group in range(self._file.num_row_groups):
            found = self._file.metadata.row_group(group)
            room = base.CHUNK_CHARACTERS * found.num_rows // max(found.total_byte_size, 1)
            rows = max(1, min(base.CHUNK_ROWS, room))
            yield from self._file.iter_batches(rows, row_groups=[group])


class IpcTable(ArrowTable):
    """An Arrow file, of the format for files or for streams, plain or compressed as a whole.

    Raises:
        UserError: it is none, or damaged.
    """

    def __init__(self, path: Path, compression: str | None = None) -> None:
        self.source, self._path, self._compression = str(path), path, compression
        try:
            self._set_schema(self._opened().schema)
        except _FAILURES as error:
            raise cannot_be_read(f"{path} (Arrow)", error) from error

    def fingerprint(self) -> str:
        return sha256_of(self._path)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        reader = self._opened()
        if isinstance(reader, pa.ipc.RecordBatchStreamReader):
            yield from reader
        else:
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))

    def _opened(self) -> Any:
        content = _content(self._path, self._compression)
        source = pa.memory_map(str(content)) if isinstance(content, Path) else content
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)


class DatasetTable(ArrowTable):
    """A split of a data set; labels that it stores as numbers with names have their names."""

    def __init__(self, name: str, rows: datasets.Dataset) -> None:
        self.source, self._dataset, self.total = name, rows, len(rows)
        self._set_schema(rows.features.arrow_schema)
        self._names = {
            column: feature.names
            for column, feature in rows.features.items()
            if isinstance(feature, datasets.ClassLabel)
        }

    @property
    def unlabelled(self) -> bool:
        """Whether it keeps its labels to itself, as the test splits of some benchmarks do."""
        labels = [row.values[column] for row in self.sample() for column in self._names]
        return bool(labels) and all(label is None for label in labels)

    def fingerprint(self) -> str:
        return str(self._dataset._fingerprint)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for table in self._dataset.with_format("arrow").iter(base.CHUNK_ROWS):
            yield from table.combine_chunks().cast(self.schema).to_batches()

    def _values(self, name: str, column: pa.Array, before: int) -> list[Any]:
        """A label that is not given (-1) is None."""
        values = super()._values(name, column, before)
        names = self._names.get(name)
        if names is None:
            return values
        return [None if index is None or index < 0 else names[index] for index in values]


def _content(path: Path, compression: str | None) -> Path | io.BytesIO:
    if compression is None:
        return path
    with unpacked(path, compression) as (_, file):
        return io.BytesIO(file.read())


def _is_plain(kind: pa.DataType) -> bool:
    """Whether its values are text, numbers or truth values of Python."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null,
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean,
    )  # fmt: skip
    return any(test(kind) for test in tests)
