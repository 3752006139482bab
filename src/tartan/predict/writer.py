"""Joins rows with their predictions and writes them as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tartan.data.table import Format, Row, Table
from tartan.errors import UserError


class Writer:
    """Adds the columns `predicted_label` and `probability_LABEL`, one a label, to a table's chunks.

    Attributes:
        counts: number of rows by predicted label, in the classifier's order.
    """

    def __init__(self, table: Table, target: Format, labels: Sequence[str], prefix: str) -> None:
        self.counts = Counter(dict.fromkeys(labels, 0))
        self._labels, self._target = labels, target
        self._added = [f"{prefix}predicted_label", *(f"{prefix}probability_{x}" for x in labels)]
        self._of_json, self._is_csv = table.schema is None, target.kind in ("csv", "tsv")
        self._columns = list(table.columns)
        self._separator = "\t" if target.kind == "tsv" else ","
        if target.kind == "csv" and table.separator not in (None, "\t"):
            self._separator = table.separator
        if self._of_json and target.kind == "parquet":
            raise UserError(f"{table.source} has no types for Parquet; name a .jsonl or .csv")
        self._check_free(self._columns, table.source)
        types = [pa.string(), *(pa.float32() for _ in labels)]
        added = list(map(pa.field, self._added, types))
        self._read = table.schema
        if table.schema is not None:
            self._schema = pa.schema([*table.schema, *added], table.schema.metadata)

    @contextmanager
    def open(self, path: str) -> Iterator[None]:
        """Begin the output, and end it when the `with` block ends."""
        if self._target.kind == "parquet":
            with pq.ParquetWriter(path, self._schema) as self._file:
                yield
            return
        with pa.output_stream(path, compression=self._target.compression) as self._file:
            if self._is_csv:
                self._write_csv([[*self._columns, *self._added]])
            yield

    def write(self, rows: Sequence[Row], probabilities: np.ndarray) -> None:
        """Write rows with the probability of each label, float32 `(rows, labels)`.

        A `UserError` says that the format cannot hold them.
        """
        predicted = [self._labels[index] for index in probabilities.argmax(axis=1)]
        self.counts.update(predicted)
        if self._target.kind == "parquet":
            added = [pa.array(predicted), *map(pa.array, probabilities.T)]
            read = pa.Table.from_pylist([dict(row.values) for row in rows], self._read)
            self._file.write_table(pa.table([*read.columns, *added], schema=self._schema))
            return
        # as few digits as give the same float32 back
        scores = [[float(str(value)) for value in column] for column in probabilities.T]
        added = list(zip(predicted, *scores, strict=True))
        if self._is_csv:
            fields = map(self._fields, rows)
            self._write_csv([*row, *new] for row, new in zip(fields, added, strict=True))
            return
        if self._of_json:
            for row in rows:
                self._check_free(row.values, row.place)
        records = [dict(row.values) for row in rows]
        for record, new in zip(records, added, strict=True):
            record |= dict(zip(self._added, new, strict=True))
        self._file.write("".join(f"{_as_json(record)}\n" for record in records).encode())

    def _write_csv(self, rows: Iterable[Sequence[Any]]) -> None:
        lines: list[str] = []
        # With this line end a field that holds either of its characters is quoted.
        file: Any = SimpleNamespace(write=lines.append)
        writer = csv.writer(file, delimiter=self._separator, lineterminator="\r\n")
        writer.writerows(map(_as_text, rows))
        self._file.write("".join(f"{line[:-2]}\n" for line in lines).encode())

    def _check_free(self, columns: Iterable[str], place: str) -> None:
        if taken := set(self._added).intersection(columns):
            raise UserError(f"{place}: there is a column {min(taken)} already; use prefix=PREFIX")

    def _fields(self, row: Row) -> Sequence[Any]:
        """Return the values in the columns, of JSON in those of the first rows."""
        if others := row.values.keys() - set(self._columns):
            raise UserError(
                f"{row.place}: the first rows have no {min(others)}; name an output that ends in "
                ".jsonl"
            )
        return [row.values.get(name) for name in self._columns]


def _as_json(row: dict[str, Any]) -> str:
    """Return a row as JSON, with null for numbers that JSON has not: NaN and infinities."""
    try:
        return json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(row, default=str)
        return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)


def _as_text(values: Iterable[Any]) -> list[str]:
    """Return fields of CSV: null as nothing, lists, mappings and numbers as in JSON."""
    return [
        "" if value is None
        else json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, bool | int | float | list | dict)
        else str(value)
        for value in values
    ]  # fmt: skip
