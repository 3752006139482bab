"""Joins rows with their predictions and writes them in any format.

The columns of the input are written as they were read: fields of CSV as text, JSON objects
character for character, columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tartan.data.table.base import Chunk, Table, until_full
from tartan.data.table.open import COLUMNAR, Format
from tartan.data.table.text import DelimitedTable, JsonTable
from tartan.errors import UserError, first_line

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
    """

    def __init__(self, table: Table, target: Format, labels: Sequence[str], prefix: str) -> None:
        self._source, self._target, self._labels = table.source, target, labels
        self.counts: Counter[str] = Counter()
        scores = [(f"{prefix}probability_{label}", pa.float32()) for label in labels]
        self._added = pa.schema([(f"{prefix}predicted_label", pa.string()), *scores])
        self._is_csv = target.kind in ("csv", "tsv")
        usual = "\t" if target.kind == "tsv" else ","
        self._delimiter, self._end, self._mark = usual, "\n", ""
        if isinstance(table, DelimitedTable):
            self._end, self._mark = table.line_end, "\ufeff" if table.is_marked else ""
            self._delimiter = table.separator if table.usual == usual else usual
        self._is_json, self._read = isinstance(table, JsonTable), table.schema
        if not self._is_json:  # of JSON, each row has fields of its own
            self._check_free(table.columns, table.source)
        elif target.kind != "jsonl":
            self._read = self._inferred(table)
        of_bytes = [field.name for field in self._read if "binary" in str(field.type)]
        if of_bytes and target.kind not in COLUMNAR:
            raise UserError(
                f"{table.source}: column {of_bytes[0]!r} holds bytes, which {target.kind} cannot"
            )
        if not self._is_csv and self._read.names.count("") > 1:
            raise UserError(f"{table.source}: it has columns without a name; name them")
        self._schema = pa.schema([*self._read, *self._added], self._read.metadata)

    def lines(self, rows: Rows) -> Iterator[bytes]:
        """Yield the header, and each chunk with its predictions, as lines of text."""
        if self._is_csv:
            yield (self._mark + self._csv([self._schema.names])).encode()
        spelled, scores = _as_text if self._is_csv else _json, len(self._read) + 1
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
        if self._target.kind in COLUMNAR:
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
                self._check_free(row.values, row.place)
            if self._target.kind != "jsonl":
                columns = self._fitted(chunk)
        predicted = [self._labels[index] for index in probabilities.argmax(axis=1)]
        self.counts.update(predicted)
        added = [pa.array(predicted), *map(pa.array, probabilities.T)]
        return pa.Table.from_arrays([*columns.columns, *added], schema=self._schema)

    def _check_free(self, columns: Collection[str], place: str) -> None:
        taken = [name for name in self._added.names if name in columns]
        if taken:
            raise UserError(
                f"{place}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )

    def _inferred(self, table: Table) -> pa.Schema:
        """Return the columns that hold the fields of JSON's first rows; those of CSV hold text."""
        if self._is_csv:
            return pa.schema([(name, pa.string()) for name in table.columns])
        rows = table.sample()
        try:
            values = {name: [row.values.get(name) for row in rows] for name in table.columns}
            return pa.table(values).schema
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise self._unfit(table.source, first_line(error)) from error

    def _fitted(self, chunk: Chunk) -> pa.Table:
        """Return rows of JSON in the columns that the first rows have, unchanged."""
        names = self._read.names
        for row in chunk.rows:
            if unknown := [name for name in row.values if name not in names]:
                raise self._unfit(row.place, f"the first rows have no field {unknown[0]!r}")
        values: dict[str, list[Any]] = {
            name: [row.values.get(name) for row in chunk.rows] for name in names
        }
        if self._is_csv:
            values = {name: list(map(_as_text, column)) for name, column in values.items()}
        try:
            columns = pa.Table.from_pydict(values, self._read)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise self._unfit(chunk.rows[0].place, first_line(error)) from error
        # Arrow drops entries of an object that the first rows did not have
        if str(columns.to_pydict()) != str(values) and columns.to_pydict() != values:
            raise self._unfit(chunk.rows[0].place, "values differ in type from the first rows'")
        return columns

    def _unfit(self, place: str, reason: str) -> UserError:
        return UserError(
            f"{place} and on: cannot be {self._target.kind} ({reason}); name an output that ends "
            "in .jsonl"
        )

    def _csv(self, rows: Iterable[Sequence[str]]) -> str:
        lines: list[str] = []
        # With this line end both of its characters are quoted in a field; it is exchanged after.
        file: Any = SimpleNamespace(write=lines.append)
        csv.writer(file, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        return "".join(line.removesuffix("\r\n") + self._end for line in lines)


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)


def _json(value: Any) -> str:
    """Return a value as JSON, with null for numbers that JSON has not: NaN and infinities."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, float | list | dict):
        value = json.loads(text, parse_constant=lambda _: None)
        text = json.dumps(value, ensure_ascii=False)
    return text


def _as_text(value: Any) -> str:
    """Return a value as a field of CSV: null as nothing, lists, mappings and numbers as in JSON."""
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else str(value)
