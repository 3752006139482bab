"""Joins rows with their predictions and writes them in any format.

Chunks are gathered as Arrow streams, of which a file of the output's format is made in the end. The
columns of the input are written as they were read: fields of CSV as text, JSON objects character
for character, columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from src.data.table.base import Chunk, Table
from src.data.table.delimited import DelimitedTable
from src.data.table.formats import STREAM, TABLES, Format, endings_of, format_of
from src.data.table.json_rows import JsonTable
from src.errors import UserError

GROUP_ROWS = 1 << 16
"""Number of rows at which a row group of Parquet ends, rounded up to whole chunks."""
GROUP_BYTES = 1 << 26
"""Size in memory at which a row group of Parquet ends, rounded up to whole chunks [bytes]."""
Streamed = Literal["csv", "tsv", "jsonl"]
_STREAMED = get_args(Streamed)


@dataclass(frozen=True)
class Predictions:
    """The predictions for a chunk of n rows.

    Attributes:
        labels: name of the most probable label of each row, n strings.
        probabilities: probability of each label, float32 `(n, classes)`.
    """

    labels: Sequence[str]
    probabilities: np.ndarray


def formats_of(source: str, target: str, stated: str | None) -> tuple[Format, Format]:
    """Return the formats of input and output.

    A file's name tells its format. For standard input and output it is `format=`, or the format of
    the other of the two.

    Args:
        source: `input=`.
        target: `output=`.
        stated: `format=`.

    Raises:
        UserError: a format cannot be told, or is not supported there.
    """
    given = [_by_name("input", source), _by_name("output", target)]
    named = [one.kind for one in given if one is not None]
    if stated is None and not named:
        raise UserError(
            f"input=- and output=- need the format of rows: format={'|'.join(_STREAMED)}"
        )
    streamed = stated or ("jsonl" if named[0] == "json" else named[0])
    if STREAM in (source, target) and streamed not in _STREAMED:
        option = "input" if source == STREAM else "output"
        raise UserError(f"{option}=- cannot be {streamed}; use a file, or format=csv")
    return given[0] or Format(streamed), given[1] or Format(streamed)


def _by_name(option: str, path: str) -> Format | None:
    """Return the format that a file's name tells; None for standard input and output."""
    if path == STREAM:
        return None
    kinds = [kind for kind in TABLES if option == "input" or kind != "json"]
    if option == "input" and (Path(path).expanduser() / "dataset_info.json").is_file():
        return Format("arrow")  # a data set of `datasets`
    found = format_of(Path(path), kinds)
    is_arrow = found is not None and found.kind in ("parquet", "arrow")
    if found is None or (option == "output" and is_arrow and found.compression):
        raise UserError(
            f"{option}={path}: cannot tell the format; a file's name has to end in one of "
            f"{endings_of(kinds)}"
        )
    return found


class Writer:
    """Adds predictions to chunks, and writes the result as lines of text or as a file.

    The columns that are added are `predicted_label` and a `probability_LABEL` for each label.

    Args:
        table: the input; its separator is kept where CSV is written as CSV.
        formats: formats of input and output.
        labels: label names, in index order.
        prefix: prefix of the added columns' names.

    Raises:
        UserError: the table already has a column of that name, or one that the output's format
            cannot hold.
    """

    def __init__(
        self, table: Table, formats: tuple[Format, Format], labels: Sequence[str], prefix: str
    ) -> None:
        self._table, (source, self._target) = table, formats
        names = ["predicted_label", *(f"probability_{label}" for label in labels)]
        self._added = [f"{prefix}{name}" for name in names]
        self._is_json = isinstance(table, JsonTable)
        if not self._is_json:  # of JSON, each row has fields of its own
            self._check_free(table.columns, table.source)
        self._delimiter = "\t" if self._target.kind == "tsv" else ","
        self._end, self._mark = "\n", ""
        if isinstance(table, DelimitedTable):
            self._end, self._mark = table.line_end, "\ufeff" if table.lines.is_marked else ""
            if source.kind == self._target.kind:
                self._delimiter = table.separator
        self.schema = table.schema
        if self._target.kind not in ("csv", "tsv") and self.schema.names.count("") > 1:
            raise UserError(f"{table.source}: it has columns without a name; name them")
        of_bytes = [field.name for field in self.schema if "binary" in str(field.type)]
        if of_bytes and self._target.kind not in ("parquet", "arrow"):
            raise UserError(
                f"{table.source}: column {of_bytes[0]!r} holds bytes, which {self._target.kind} "
                "cannot; name an output that ends in .parquet"
            )
        if self._is_json and self._target.kind != "jsonl":
            self.schema = pa.Table.from_pylist([dict(row.values) for row in table.sample()]).schema
        added = [pa.string(), *(pa.float32() for _ in labels)]
        for name, kind in zip(self._added, added, strict=True):
            self.schema = self.schema.append(pa.field(name, kind))

    def joined(self, chunk: Chunk, predictions: Predictions) -> pa.Table:
        """Return the chunk with the added columns.

        Raises:
            UserError: a row of JSON already has such a field, or its fields differ from the first
                rows'.
        """
        columns = chunk.columns.columns
        if self._is_json:
            for row in chunk.rows:
                self._check_free(row.values, self._table.where(row.number))
            if self._target.kind != "jsonl":
                columns = self._fitted(chunk)
        columns += [pa.array(predictions.labels, pa.string())]
        columns += [pa.array(scores) for scores in predictions.probabilities.T]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def header(self) -> bytes:
        """Return what a text file of the output's format begins with."""
        if self._target.kind == "jsonl":
            return b""
        return (self._mark + self._csv([self.schema.names])).encode()

    def text(self, rows: pa.Table) -> bytes:
        """Return rows as lines of the output's format."""
        values = [column.to_pylist() for column in rows.columns]
        # as few digits as give the same float32 back
        first = len(values) - len(self._added) + 1
        scores = [[str(v) for v in column.to_numpy()] for column in rows.columns[first:]]
        if self._target.kind != "jsonl":
            texts = ([_as_text(value) for value in column] for column in values[:first])
            return self._csv(zip(*texts, *scores, strict=True)).encode()
        lines = []
        for own in zip(*values[:first], *scores, strict=True):
            named = zip(self.schema.names, own, strict=True)
            fields = [
                f"{_json(name)}: {value if place >= first else _json(value)}"
                for place, (name, value) in enumerate(named)
            ]
            if self._is_json:  # an object that holds at least its text
                fields[0] = own[0].removesuffix("}").rstrip().removeprefix("{")
            lines.append(f"{{{', '.join(fields)}}}\n")
        return "".join(lines).encode()

    def write(self, part: Path, path: Path) -> None:
        """Make the final file at `path` of the streams in `part`."""
        kind, compression = self._target
        if kind in ("parquet", "arrow"):
            new = pq.ParquetWriter if kind == "parquet" else pa.ipc.new_file
            with new(path, self.schema) as groups:
                for group in _groups(tables_of(part)):
                    groups.write_table(group, group.num_rows)
            return
        with pa.output_stream(str(path), compression=compression) as file:
            file.write(self.header())
            for rows in tables_of(part):
                file.write(self.text(rows))

    def _check_free(self, columns: Collection[str], where: str) -> None:
        taken = [name for name in self._added if name in columns]
        if taken:
            raise UserError(
                f"{where}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )

    def _fitted(self, chunk: Chunk) -> list[pa.ChunkedArray]:
        """Return a chunk of JSON rows in the columns that the first rows have."""
        schema = pa.schema(list(self.schema)[: -len(self._added)])
        rows = [{name: row.values.get(name) for name in schema.names} for row in chunk.rows]
        for row, fitted in zip(chunk.rows, rows, strict=True):
            try:
                if extra := row.values.keys() - fitted.keys():
                    raise ValueError(f"the first rows have no field {min(extra)!r}")
                if pa.Table.from_pylist([fitted], schema).to_pylist() != [fitted]:
                    raise ValueError("the first rows have other fields in an object")
            except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
                raise UserError(
                    f"{self._table.where(row.number)}: cannot be {self._target.kind} ({error}); "
                    "name an output that ends in .jsonl"
                ) from error
        columns: list[pa.ChunkedArray] = pa.Table.from_pylist(rows, schema).columns
        return columns

    def _csv(self, rows: Iterable[Sequence[str]]) -> str:
        lines, content = [], io.StringIO(newline="")
        # With this line end both of its characters are quoted in a field; it is exchanged after.
        writer = csv.writer(content, delimiter=self._delimiter, lineterminator="\r\n")
        for row in rows:
            writer.writerow(row)
            lines.append(content.getvalue().removesuffix("\r\n") + self._end)
            content.seek(0)
            content.truncate()
        return "".join(lines)


def stream_of(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream; several streams in one file can be read back."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def tables_of(part: Path) -> Iterator[pa.Table]:
    """Yield the tables in a file of consecutive Arrow streams."""
    size = part.stat().st_size
    with pa.OSFile(str(part), "rb") as file:
        while file.tell() < size:
            yield pa.ipc.open_stream(file).read_all()


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


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _as_text(value: Any) -> str:
    """Return a value as a field of CSV: strings as they are, lists and mappings as JSON."""
    if isinstance(value, dict | list | bool):
        return _json(value)
    return "" if value is None else str(value)
