"""Joins rows with their predictions and writes them in any format.

The columns of the input are written as they were read: fields of CSV as text, JSON objects
character for character, columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tartan.data.table import Chunk, Row, Table
from tartan.data.table_file import DelimitedTable, Format, JsonTable
from tartan.errors import UserError, first_line


class Writer:
    """Adds the columns `predicted_label` and `probability_LABEL`, one a label, to a table's chunks.

    Attributes:
        counts: number of rows by predicted label, in the classifier's order.
    """

    def __init__(self, table: Table, target: Format, labels: Sequence[str], prefix: str) -> None:
        self.counts = Counter(dict.fromkeys(labels, 0))
        self._table, self._target, self._labels = table, target, labels
        scores = [(f"{prefix}probability_{label}", pa.float32()) for label in labels]
        self._added = pa.schema([(f"{prefix}predicted_label", pa.string()), *scores])
        self._check_free(table.columns, table.source)
        self._of_json, self._is_csv = isinstance(table, JsonTable), target.kind in ("csv", "tsv")
        self._separator = "\t" if target.kind == "tsv" else ","
        if isinstance(table, DelimitedTable) and table.usual == self._separator:
            self._separator = table.separator
        read = table.schema
        if self._of_json and target.kind != "jsonl":
            read = self._columns(table.sample(), None).schema
        if target.kind != "parquet" and any("binary" in str(kind) for kind in read.types):
            raise UserError(f"{table.source} holds bytes, which {target.kind} cannot")
        if not self._is_csv and read.names.count("") > 1:
            raise UserError(f"{table.source} has columns without a name; name them")
        self._read, self._schema = read, pa.schema([*read, *self._added], read.metadata)

    @contextmanager
    def open(self, path: str | IO[bytes]) -> Iterator[None]:
        """Begin the output, and end it when the `with` block ends."""
        if self._target.kind == "parquet":
            with pq.ParquetWriter(path, self._schema) as self._file:
                yield
            return
        with pa.output_stream(path, compression=self._target.compression) as self._file:
            if self._is_csv:
                self._write_csv([self._schema.names])
            yield

    def write(self, chunk: Chunk, probabilities: np.ndarray) -> None:
        """Write the rows of a chunk with the probability of each label, float32 `(rows, labels)`.

        Raises:
            UserError: the format cannot hold them.
        """
        predicted = [self._labels[index] for index in probabilities.argmax(axis=1)]
        self.counts.update(predicted)
        columns = chunk.columns
        if self._of_json:
            for row in chunk.rows:
                self._check_free(row.values, row.place)
            if self._target.kind != "jsonl":
                columns = self._columns(chunk.rows, self._read)
        if self._target.kind == "parquet":
            added = [pa.array(predicted), *map(pa.array, probabilities.T)]
            self._file.write_table(pa.table([*columns.columns, *added], schema=self._schema))
            return
        # as few digits as give the same float32 back
        scores = [[float(str(value)) for value in column] for column in probabilities.T]
        values = [column.to_pylist() for column in columns.columns]
        if self._is_csv:
            self._write_csv(zip(*values, predicted, *scores, strict=True))
            return
        records, names = ([], self._schema.names)
        if self._of_json:
            (records,), names, values = values, self._added.names, []
        rows = zip(*values, predicted, *scores, strict=True)
        lines = [_as_json(dict(zip(names, row, strict=True))) for row in rows]
        if records:  # the objects that were read, which hold at least a text
            both = zip(records, lines, strict=True)
            lines = [f"{record[:-1].rstrip()}, {added[1:]}" for record, added in both]
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def _write_csv(self, rows: Iterable[Sequence[Any]]) -> None:
        lines: list[str] = []
        # With this line end a field that holds either of its characters is quoted.
        file: Any = SimpleNamespace(write=lines.append)
        writer = csv.writer(file, delimiter=self._separator, lineterminator="\r\n")
        writer.writerows(map(_as_text, rows))
        self._file.write("".join(f"{line[:-2]}\n" for line in lines).encode())

    def _check_free(self, columns: Iterable[str], place: str) -> None:
        if taken := set(self._added.names).intersection(columns):
            raise UserError(f"{place}: there is a column {min(taken)} already; use prefix=PREFIX")

    def _columns(self, rows: Sequence[Row], schema: pa.Schema | None) -> pa.Table:
        """Return rows of JSON in the columns that the first rows have, unchanged."""
        names = list(self._table.columns)
        values = [dict.fromkeys(names) | dict(row.values) for row in rows]
        if self._is_csv:
            values = [dict(zip(row, _as_text(row.values()), strict=True)) for row in values]
        try:
            table = pa.table({name: [row[name] for row in values] for name in names}, schema)
            # Arrow drops fields that the first rows did not have; NaN does not equal itself
            if schema and (read := table.to_pylist()) != values and str(read) != str(values):
                raise ValueError("fields or types differ from those of the first rows")
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise UserError(
                f"{rows[0].place} and on: cannot be {self._target.kind} ({first_line(error)}); "
                "name an output that ends in .jsonl"
            ) from error
        return table


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
