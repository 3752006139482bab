"""Joins rows with their predictions and writes them in any format.

The columns of the input are written as they were read: fields of CSV as text, JSON objects
character for character, columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from src.data.table.base import Chunk, Row, Table
from src.data.table.delimited import DelimitedTable
from src.data.table.formats import Format
from src.data.table.json_rows import JsonTable
from src.errors import UserError, first_line

_UNFIT = (ValueError, TypeError, OverflowError, RecursionError, OSError, pa.ArrowException)
"""Errors at values that one column cannot hold together, and at columns that a format has not."""
GROUP_ROWS = 1 << 16
"""Number of rows at which a row group of Parquet ends, rounded up to whole chunks."""
GROUP_BYTES = 1 << 26
"""Size in memory at which a row group of Parquet ends, rounded up to whole chunks [bytes]."""


class Writer:
    """Adds predictions to chunks, and writes the result as lines of text or as a file.

    The columns that are added are `predicted_label` and a `probability_LABEL` for each label.

    Args:
        table: the input; its separator is kept where CSV is written as CSV.
        target: the output's format.
        labels: label names, in index order.
        prefix: prefix of the added columns' names.

    Raises:
        UserError: the table already has a column of that name, or one that the output's format
            cannot hold.
    """

    def __init__(self, table: Table, target: Format, labels: Sequence[str], prefix: str) -> None:
        self._table, self._target, self._labels = table, target, labels
        self._added = pa.schema(
            [(f"{prefix}predicted_label", pa.string())]
            + [(f"{prefix}probability_{label}", pa.float32()) for label in labels]
        )
        usual = "\t" if target.kind == "tsv" else ","
        self._delimiter, self._end, self._mark = usual, "\n", ""
        if isinstance(table, DelimitedTable):
            self._end, self._mark = table.line_end, "\ufeff" if table.lines.is_marked else ""
            self._delimiter = table.separator if table.usual == usual else usual
        self._is_json, self._own = isinstance(table, JsonTable), table.schema
        if not self._is_json:  # of JSON, each row has fields of its own
            self._check_free(table.columns, table.source)
        elif target.kind != "jsonl":
            self._own = self._inferred(table)
        if target.kind not in ("csv", "tsv") and self._own.names.count("") > 1:
            raise UserError(f"{table.source}: it has columns without a name; name them")
        of_bytes = [field.name for field in self._own if "binary" in str(field.type)]
        if of_bytes and target.kind not in ("parquet", "arrow"):
            raise UserError(
                f"{table.source}: column {of_bytes[0]!r} holds bytes, which {target.kind} cannot; "
                "name an output that ends in .parquet"
            )
        self._schema = pa.schema([*self._own, *self._added], self._own.metadata)
        if target.kind == "parquet":
            self._check_parquet()

    def joined(self, chunk: Chunk, probabilities: np.ndarray) -> pa.Table:
        """Return the chunk of n rows with the added columns.

        Args:
            chunk: the rows.
            probabilities: probability of each label, float32 `(n, classes)`.

        Raises:
            UserError: a row of JSON already has such a field, or its fields differ from the first
                rows'.
        """
        columns = chunk.columns.columns
        if self._is_json:
            for row in chunk.rows:
                self._check_free(row.values, self._table.where(row.number))
            if self._target.kind != "jsonl":
                columns = pa.concat_tables(map(self._fitted, chunk.rows)).combine_chunks().columns
        labels = pa.array([self._labels[index] for index in probabilities.argmax(axis=1)])
        added = [labels, *map(pa.array, probabilities.T)]
        return pa.Table.from_arrays([*columns, *added], schema=self._schema)

    def counts(self, rows: pa.Table) -> Counter[str]:
        """Return the number of rows by predicted label."""
        return Counter(rows[len(self._own)].to_pylist())

    def header(self) -> bytes:
        """Return what a text file of the output's format begins with."""
        if self._target.kind == "jsonl":
            return b""
        return (self._mark + self._csv([self._schema.names])).encode()

    def text(self, rows: pa.Table) -> bytes:
        """Return rows as lines of the output's format."""
        spelled, scores = _json if self._target.kind == "jsonl" else _as_text, len(self._own) + 1
        fields = [[spelled(v) for v in column.to_pylist()] for column in rows.columns[:scores]]
        # as few digits as give the same float32 back
        fields += [[str(v) for v in column.to_numpy()] for column in rows.columns[scores:]]
        if self._target.kind != "jsonl":
            return self._csv(zip(*fields, strict=True)).encode()
        names = [f"{_json(name)}: " for name in self._schema.names]
        if self._is_json:  # the fields of an object, which holds at least its text
            names[0], fields[0] = "", [record[1:-1].rstrip() for record in rows[0].to_pylist()]
        lines = (
            ", ".join(name + value for name, value in zip(names, row, strict=True))
            for row in zip(*fields, strict=True)
        )
        return "".join(f"{{{line}}}\n" for line in lines).encode()

    def write(self, tables: Iterable[pa.Table], path: Path) -> None:
        """Make the output file at `path` of all rows."""
        kind, compression = self._target
        if kind in ("parquet", "arrow"):
            new = pq.ParquetWriter if kind == "parquet" else pa.ipc.new_file
            with new(path, self._schema) as groups:
                for group in _groups(tables):
                    groups.write_table(group, group.num_rows)
            return
        with pa.output_stream(str(path), compression=compression) as file:
            file.write(self.header())
            for rows in tables:
                file.write(self.text(rows))

    def _check_free(self, columns: Collection[str], where: str) -> None:
        taken = [name for name in self._added.names if name in columns]
        if taken:
            raise UserError(
                f"{where}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )

    def _check_parquet(self) -> None:
        """Raise `UserError` if Parquet lacks a column's type, before anything is predicted."""
        try:
            with pa.BufferOutputStream() as file:
                pq.ParquetWriter(file, self._schema).close()
                pq.read_schema(pa.BufferReader(file.getvalue()))
        except _UNFIT as error:
            raise self._unfit(self._table.source, error) from error

    def _inferred(self, table: Table) -> pa.Schema:
        """Return the columns that hold the fields of JSON's first rows; those of CSV hold text."""
        rows, fields, is_text = table.sample(), [], self._target.kind in ("csv", "tsv")
        for name in table.columns:
            try:
                held = pa.string()
                if not is_text:
                    held = pa.array([row.values.get(name) for row in rows]).type
                fields.append(pa.field(name, held))
            except _UNFIT as error:
                raise self._unfit(f"{table.source}, field {name!r}", error) from error
        return pa.schema(fields)

    def _fitted(self, row: Row) -> pa.Table:
        """Return a row of JSON in the columns that the first rows have."""
        values = dict(row.values)
        try:
            if self._target.kind in ("csv", "tsv"):
                values = {name: _spelled(value) for name, value in values.items()}
            fitted = pa.Table.from_pylist([values], self._own)
            (kept,) = fitted.to_pylist()
            for name, value in values.items():
                # NaN, which Python's JSON has, equals nothing
                if name not in kept or _finite(kept[name]) != _finite(value):
                    raise ValueError(f"the first rows have no field {name!r} of this kind")
        except _UNFIT as error:
            raise self._unfit(self._table.where(row.number), error) from error
        return fitted

    def _unfit(self, where: str, error: Exception) -> UserError:
        return UserError(
            f"{where}: cannot be {self._target.kind} ({first_line(error)}); name an output that "
            "ends in .jsonl"
        )

    def _csv(self, rows: Iterable[Sequence[str]]) -> str:
        lines: list[str] = []
        # With this line end both of its characters are quoted in a field; it is exchanged after.
        file: Any = SimpleNamespace(write=lines.append)
        csv.writer(file, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        return "".join(line.removesuffix("\r\n") + self._end for line in lines)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the same rows in tables that are large enough for row groups of Parquet."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        rows, room = (sum(getattr(t, of) for t in waiting) for of in ("num_rows", "nbytes"))
        if rows >= GROUP_ROWS or room >= GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _spelled(value: Any) -> str | None:
    """Return a value of JSON as text: strings as they are, null as None, all else as in JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    """Return a value with null for numbers that JSON has not: NaN and infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):  # of a map, pairs
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return value


def _as_text(value: Any) -> str:
    """Return a value as a field of CSV: strings as they are, lists and mappings as JSON."""
    if isinstance(value, dict | list | bool):
        return _json(value)
    return "" if value is None else str(value)
