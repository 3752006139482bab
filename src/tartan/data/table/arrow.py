"""Reads Parquet and Arrow files and data sets of `datasets`: typed columns, batch by batch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from tartan.data.table import base
from tartan.data.table.base import Chunk, Row, Table, check_names
from tartan.data.table.text import UNREADABLE, unpacked
from tartan.errors import UserError, first_line
from tartan.files import check_is_file, is_inside, read_bytes, sha256_of

_SINGLE = re.compile(
    r"(dictionary<values=)?(large_)?(string|u?int\d|halffloat|float|double|bool|null)"
)
"""Beginning of the names of types whose values are strings, numbers or truth values in Python."""
_STATE, _INFO = "state.json", "dataset_info.json"
"""Files that `save_to_disk` writes."""
_UNNAMED_LABELS = re.compile(r'"names_file": "|"num_classes": \d')
"""What would let a `ClassLabel` read a file elsewhere, or make up names."""


class ArrowTable(Table):
    """A table whose columns have Arrow types.

    Args:
        source: the file's path or the data set's name, for messages.
        schema: names and types of the columns.
        batches: yields all rows in batches.
        digest: computes the table's fingerprint.
        total: number of rows; None where the file does not say.

    Attributes:
        labels: names of labels, by the columns that hold their indices; -1 is no label.
    """

    unit = "row"

    def __init__(
        self,
        source: str,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        digest: Callable[[], str],
        total: int | None = None,
    ) -> None:
        self.source, self.schema, self.columns = source, schema, tuple(schema.names)
        self.labels: dict[str, Sequence[str]] = {}
        self._batches, self._digest, self._done, self._total = batches, digest, 0, total
        check_names(f"{source}: its schema", self.columns)

    @cached_property
    def fingerprint(self) -> str:
        return self._digest()

    @property
    def unlabelled(self) -> bool:
        """Whether no label is given, as in the test splits of some benchmarks."""
        labels = [row.values[column] for row in self.sample() for column in self.labels]
        return bool(labels) and all(label is None for label in labels)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; for nested values and times the type stands in place of the value."""
        for chunk in self.chunks():
            yield from chunk.rows

    def progress(self) -> tuple[int, int | None]:
        return self._done, self._total

    def chunks(self) -> Iterator[Chunk]:
        self._done = 0
        try:
            for batch in self._batches():
                batch.validate(full=True)  # a wrong position would end the process
                for start in range(0, batch.num_rows, base.CHUNK_ROWS):
                    piece = batch.slice(start, base.CHUNK_ROWS).cast(self.schema)
                    columns = (self._values(name, piece[name]) for name in self.columns)
                    rows = [
                        Row(n, dict(zip(self.columns, values, strict=True)), self.place(n))
                        for n, values in enumerate(zip(*columns, strict=True), self._done + 1)
                    ]
                    self._done += len(rows)
                    yield Chunk(rows, pa.Table.from_batches([piece]))
        except UNREADABLE as error:
            raise UserError(
                f"{self.source} cannot be read after row {self._done}: {first_line(error)}"
            ) from error

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        if not _SINGLE.match(str(column.type)):
            return [column.type] * len(column)
        values: list[Any] = column.to_pylist()
        names = self.labels.get(name)
        if names is None:
            return values
        if max((value for value in values if value is not None), default=-1) >= len(names):
            raise UserError(f"{self.source}: column {name!r} has no label {max(values)}")
        return [None if v is None or v < 0 else names[v] for v in values]


def table_of_dataset(name: str, rows: datasets.Dataset) -> ArrowTable:
    """Return a data set as a table; labels that it stores as indices are read as their names."""
    batches, digest = partial(_batches_of, rows), partial(content_digest, rows)
    table = ArrowTable(name, rows.features.arrow_schema, batches, digest, len(rows))
    features = rows.features.items()
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


def open_arrow_file(path: Path, kind: str, compression: str | None) -> ArrowTable:
    """Return the table in a Parquet or Arrow IPC file; a compressed one is unpacked in memory."""
    try:
        if compression is None:
            content = pa.memory_map(str(path)).read_buffer()
        else:
            with unpacked(path, compression) as (_, file):
                content = pa.py_buffer(file.read())
        if kind == "arrow":
            return ArrowTable(str(path), *_ipc_batches(content), partial(sha256_of, path))
        file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)

        def batches() -> Iterator[pa.RecordBatch]:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(base.CHUNK_ROWS, row_groups=[group])

        digest, total = partial(sha256_of, path), file.metadata.num_rows
        return ArrowTable(str(path), file.schema_arrow, batches, digest, total)
    except UNREADABLE as error:
        raise UserError(f"{path} cannot be read as {kind}: {first_line(error)}") from error


def _ipc_batches(
    content: pa.Buffer,
) -> tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    """Return the schema and the batches of a file in Arrow's file format, or its stream format."""
    try:
        file = pa.ipc.open_file(content)
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(content).schema, lambda: iter(pa.ipc.open_stream(content))
    return file.schema, lambda: map(file.get_batch, range(file.num_record_batches))


def open_spreadsheet(path: Path) -> ArrowTable:
    """Return the first sheet of an Excel file, all values as text, as in CSV."""
    try:
        frame = pd.read_excel(path, dtype=str, keep_default_na=False)
    except Exception as error:  # a damaged file leads to errors of any class
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return ArrowTable(str(path), table.schema, table.to_batches, partial(sha256_of, path))


def is_saved_dataset(path: Path) -> bool:
    """Return whether `save_to_disk` wrote the folder `path`."""
    return (path / _STATE).is_file() and (path / _INFO).is_file()


def open_saved_dataset(path: Path) -> ArrowTable:
    """Open the data set in a folder, whose description anybody may have changed."""
    try:
        state, info = (json.loads(read_bytes(path / name)) for name in (_STATE, _INFO))
        for name in (_STATE, _INFO, *(file["filename"] for file in state["_data_files"])):
            if not is_inside(path / name, path):
                raise UserError(f"{path}: {name!r} is outside of it and is not read")
            check_is_file(path / name)
        if _UNNAMED_LABELS.search(json.dumps(info["features"])):
            raise UserError(f"{path / _INFO}: a ClassLabel has to list the names of labels")
        return table_of_dataset(str(path), datasets.Dataset.load_from_disk(path))
    except UserError:
        raise
    except Exception as error:  # a damaged description leads to errors of any class
        raise UserError(
            f"{path} cannot be read as a data set ({type(error).__name__}: {first_line(error)})"
        ) from error
