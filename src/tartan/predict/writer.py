"""Joins rows with their predictions and writes them in any format.

The columns of the input are written as they were read: fields of CSV as text, JSON objects
character for character, columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tartan.data.table.base import Chunk, Row, Table, until_full
from tartan.data.table.delimited import DelimitedTable
from tartan.data.table.formats import COLUMNAR, Format
from tartan.data.table.json_rows import JsonTable
from tartan.errors import UserError, first_line

_UNFIT = (ValueError, TypeError, OverflowError, RecursionError, OSError, pa.ArrowException)
"""Errors at values that one column cannot hold together, and at columns that a format has not."""
GROUP_CHUNKS = 1 << 6
"""Maximum number of chunks in a row group of Parquet."""
GROUP_BYTES = 1 << 26
"""Size in memory at which a row group of Parquet ends, rounded up to whole chunks [bytes]."""
Rows: TypeAlias = Iterable[tuple[Chunk, np.ndarray]]
"""Chunks of n rows with the probability of each label, float32 `(n, labels)`."""


class Writer:
    """Adds predictions to chunks, and makes the output of them.

    The columns that are added are `predicted_label` and a `probability_LABEL` for each label.

    Args:
        table: the input; its separator is kept where CSV is written as CSV.
        target: the output's format.
        labels: label names, in index order.
        prefix: prefix of the added columns' names.

    Attributes:
        counts: number of rows by predicted label.

    Raises:
        UserError: the table already has a column of that name, or one that the output's format
            cannot hold.
    """

    def __init__(self, table: Table, target: Format, labels: Sequence[str], prefix: str) -> None:
        self._table, self._target, self._labels = table, target, labels
        self.counts: Counter[str] = Counter()
        self._added = pa.schema(
            [(f"{prefix}predicted_label", pa.string())]
            + [(f"{prefix}probability_{label}", pa.float32()) for label in labels]
        )
        self._is_csv, self._has_types = target.kind in ("csv", "tsv"), target.kind in COLUMNAR
        usual = "\t" if target.kind == "tsv" else ","
        self._delimiter, self._end, self._mark = usual, "\n", ""
        if isinstance(table, DelimitedTable):
            self._end, self._mark = table.line_end, "\ufeff" if table.lines.is_marked else ""
            self._delimiter = table.separator if table.usual == usual else usual
        self._is_json, self._own = isinstance(table, JsonTable), table.schema
        if not self._is_json:  # of JSON, each row has fields of its own
            self._check_free(table.columns, table.source)
        elif target.kind != "jsonl":
            self._own = self._inferred()
        if not self._is_csv and self._own.names.count("") > 1:
            raise UserError(f"{table.source}: it has columns without a name; name them")
        of_bytes = [field.name for field in self._own if "binary" in str(field.type)]
        if of_bytes and not self._has_types:
            raise UserError(
                f"{table.source}: column {of_bytes[0]!r} holds bytes, which {target.kind} cannot; "
                "name an output that ends in .parquet"
            )
        self._schema = pa.schema([*self._own, *self._added], self._own.metadata)
        if target.kind == "parquet":  # it may lack a column's type
            with self._fitting(table.source), pa.BufferOutputStream() as file:
                pq.ParquetWriter(file, self._schema).close()
                pq.read_schema(pa.BufferReader(file.getvalue()))

    def lines(self, rows: Rows) -> Iterator[bytes]:
        """Yield the header, and each chunk with its predictions, as lines of text.

        Raises:
            UserError: a row of JSON already has such a field, or its fields differ from the first
                rows'.
        """
        if self._is_csv:
            yield (self._mark + self._csv([self._schema.names])).encode()
        spelled, scores = _as_text if self._is_csv else _json, len(self._own) + 1
        names = [f"{_json(name)}: " for name in self._schema.names]
        for chunk in rows:
            columns = self._joined(*chunk).columns
            fields: list[Iterable[str]]
            fields = [map(spelled, column.to_pylist()) for column in columns[:scores]]
            # as few digits as give the same float32 back
            fields += [map(str, column.to_numpy()) for column in columns[scores:]]
            if self._is_csv:
                yield self._csv(zip(*fields, strict=True)).encode()
                continue
            if self._is_json:  # the fields of an object, which holds at least its text
                names[0] = ""
                fields[0] = (record[1:-1].rstrip() for record in columns[0].to_pylist())
            objects = (
                ", ".join(name + value for name, value in zip(names, row, strict=True))
                for row in zip(*fields, strict=True)
            )
            yield "".join(f"{{{fields}}}\n" for fields in objects).encode()

    def write(self, rows: Rows, path: Path) -> None:
        """Make the output file at `path`; for errors see `lines`."""
        if self._has_types:
            new = pq.ParquetWriter if self._target.kind == "parquet" else pa.ipc.new_file
            tables = (self._joined(*chunk) for chunk in rows)
            with new(path, self._schema) as file:
                while group := list(until_full(tables, GROUP_CHUNKS, GROUP_BYTES, _bytes)):
                    file.write_table(pa.concat_tables(group))
            return
        with pa.output_stream(str(path), compression=self._target.compression) as file:
            for content in self.lines(rows):
                file.write(content)

    def _joined(self, chunk: Chunk, probabilities: np.ndarray) -> pa.Table:
        """Return a chunk as the output has it, with the added columns, and count its labels."""
        columns = chunk.columns
        if self._is_json:
            for row in chunk.rows:
                self._check_free(row.values, self._table.where(row.number))
            if self._target.kind != "jsonl":
                fitted = [self._fitted(row) for row in chunk.rows]
                columns = pa.Table.from_pylist(fitted, self._own)
        predicted = [self._labels[index] for index in probabilities.argmax(axis=1)]
        self.counts.update(predicted)
        added = [pa.array(predicted), *map(pa.array, probabilities.T)]
        return pa.Table.from_arrays([*columns.columns, *added], schema=self._schema)

    def _check_free(self, columns: Collection[str], where: str) -> None:
        taken = [name for name in self._added.names if name in columns]
        if taken:
            raise UserError(
                f"{where}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )

    def _inferred(self) -> pa.Schema:
        """Return the columns that hold the fields of JSON's first rows; those of CSV hold text."""
        rows, fields = self._table.sample(), []
        for name in self._table.columns:
            with self._fitting(f"{self._table.source}, field {name!r}"):
                held = pa.array([] if self._is_csv else [row.values.get(name) for row in rows]).type
                fields.append(pa.field(name, pa.string() if self._is_csv else held))
        return pa.schema(fields)

    def _fitted(self, row: Row) -> dict[str, Any]:
        """Return a row of JSON as the columns that the first rows have hold it."""
        where, fitted = self._table.where(row.number), {}
        for name, value in row.values.items():
            with self._fitting(f"{where}, field {name!r}"):
                if name not in self._own.names:
                    raise ValueError("the first rows have no such field")
                fitted[name] = _as_text(value) if self._is_csv else value
                _check_fits(fitted[name], self._own.field(name).type)
        return fitted

    @contextmanager
    def _fitting(self, where: str) -> Iterator[None]:
        """Turn errors at what the output's format cannot hold into a line that names the place."""
        try:
            yield
        except _UNFIT as error:
            raise UserError(
                f"{where}: cannot be {self._target.kind} ({first_line(error)}); name an output "
                "that ends in .jsonl"
            ) from error

    def _csv(self, rows: Iterable[Sequence[str]]) -> str:
        lines: list[str] = []
        # With this line end both of its characters are quoted in a field; it is exchanged after.
        file: Any = SimpleNamespace(write=lines.append)
        csv.writer(file, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        return "".join(line.removesuffix("\r\n") + self._end for line in lines)


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)


def _check_fits(value: Any, kind: pa.DataType) -> None:
    """Check that a column of this type holds a value of JSON unchanged.

    Raises:
        ValueError: it does not; the message says why.
        pa.ArrowException, TypeError, OverflowError: the same.
    """
    try:
        held = pa.scalar(value, kind).as_py()
    except pa.ArrowInvalid as error:
        if "null" in str(kind):
            raise ValueError("it was null or empty in the first rows") from error
        raise
    # NaN, which Python's JSON has, equals nothing
    if _finite(held) != _finite(value):
        if "struct" in str(kind):
            raise ValueError("its objects differ in their fields")
        raise ValueError(f"{value!r:.40} is no {kind}, as the first rows have there")


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    """Return a value with null for numbers that JSON has not: NaN and infinities."""
    if not isinstance(value, float | list | dict):
        return value
    return json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)


def _as_text(value: Any) -> str:
    """Return a value as a field of CSV: null as nothing, lists, mappings and numbers as in JSON."""
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else str(value)
