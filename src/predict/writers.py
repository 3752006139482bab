"""Rows with their predictions as bytes: a header, chunks to append, and what makes a file of them.

Of a row, what was read is written: fields of CSV as text, JSON objects character for character,
columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from src.data.table.arrow import ArrowTable
from src.data.table.base import Chunk, Table
from src.data.table.delimited import DelimitedTable
from src.data.table.formats import STREAM, TABLES, Format, endings_of, format_of
from src.errors import UserError

_BOM = b"\xef\xbb\xbf"
GROUP_ROWS = 1 << 16
"""A row group of Parquet ends with the chunk that reaches this."""
GROUP_BYTES = 1 << 26
"""Or this, in memory."""
_STREAMED = ("csv", "tsv", "jsonl")


@dataclass(frozen=True)
class Predictions:
    """What was predicted of a chunk.

    Attributes:
        labels: a name for each row.
        probabilities: float32 `(rows, classes)`.
    """

    labels: Sequence[str]
    probabilities: np.ndarray

    def numbers(self) -> list[list[str]]:
        """Probabilities in as few digits as give the same float32 back."""
        return [[str(value) for value in row] for row in self.probabilities]


@dataclass(frozen=True)
class Added:
    """The columns that are added.

    Attributes:
        label: its name's column.
        probabilities: a column a class, in the labels' order.
    """

    label: str
    probabilities: tuple[str, ...]

    @staticmethod
    def named(labels: Sequence[str], prefix: str) -> Added:
        """`predicted_label` and `probability_LABEL`, after `prefix`."""
        return Added(
            f"{prefix}predicted_label", tuple(f"{prefix}probability_{label}" for label in labels)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (self.label, *self.probabilities)

    def check_free(self, columns: Collection[str], where: str) -> None:
        """Whether no column has one of these names.

        Raises:
            UserError: one has.
        """
        taken = [name for name in self.names if name in columns]
        if taken:
            raise UserError(
                f"{where}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )


def formats_of(source: str, target: str, stated: str | None) -> tuple[Format, Format]:
    """The formats of input and output.

    A file's name tells. For standard input and output `format=` does, or the name of the other.

    Raises:
        UserError: nothing tells, or rows of the one cannot be written as the other.
    """
    if stated is not None and stated not in _STREAMED:
        raise UserError(f"format={stated} is none of {', '.join(_STREAMED)}")
    given = _by_name("input", source), _by_name("output", target)
    names = [one.family if one.kind == "json" else one.kind for one in given if one is not None]
    if stated is None and not names:
        raise UserError(
            f"input=- and output=- need the format of rows: format={'|'.join(_STREAMED)}"
        )
    default = Format(stated or names[0])
    found = given[0] or default, given[1] or default
    for option, path, one in zip(("input", "output"), (source, target), found, strict=True):
        if path == STREAM and one.kind not in _STREAMED:
            raise UserError(f"{option}=- cannot be {one.kind}; use a file, or another format")
    if found[0].family != found[1].family or found[1].kind == "json":
        raise UserError(
            f"input is {found[0].kind} and output {found[1].kind}; predictions keep the format of "
            "the input (CSV and TSV go together, JSON becomes JSONL, Arrow and Parquet go "
            f"together): name an output that ends in .{found[0].family}"
        )
    return found


def _by_name(option: str, path: str) -> Format | None:
    """What the file's name says; None for standard input and output."""
    if path == STREAM:
        return None
    if option == "input" and (Path(path).expanduser() / "dataset_info.json").is_file():
        return Format("arrow")  # a data set of `datasets`
    found = format_of(Path(path), TABLES)
    if found is None or (option == "output" and found.family == "parquet" and found.compression):
        raise UserError(
            f"{option}={path}: cannot tell the format; a file's name has to end in one of "
            f"{endings_of(TABLES)}"
        )
    return found


class Writer(ABC):
    """Makes bytes of chunks; the bytes of a chunk depend on it alone."""

    def header(self) -> bytes:
        """What comes before the first chunk."""
        return b""

    @abstractmethod
    def encode(self, chunk: Chunk, predictions: Predictions) -> bytes:
        """A chunk's rows with what was predicted of them."""

    def finish(self, part: Path, whole: Path) -> bool:
        """Make the file `whole` of `part`, which holds header and chunks.

        Returns:
            Whether it did; if not, `part` is whole as it is.
        """
        return False


def writer_for(table: Table, source: Format, target: Format, added: Added) -> Writer:
    """The writer for rows of `table`.

    Args:
        source: the format of the table; one of the same kind has the same separator.
    """
    if isinstance(table, ArrowTable):
        return ParquetWriter(table.schema, target.kind, added)
    lines: Writer = JsonWriter(added)
    if isinstance(table, DelimitedTable):
        own = "\t" if target.kind == "tsv" else ","
        lines = CsvWriter(table, table.separator if source.kind == target.kind else own, added)
    return Packed(lines, target.compression) if target.compression else lines


class CsvWriter(Writer):
    """CSV with the input's line ends, and its byte order mark."""

    def __init__(self, source: DelimitedTable, delimiter: str, added: Added) -> None:
        self._source, self._delimiter, self._added = source, delimiter, added

    def header(self) -> bytes:
        """The names of all columns."""
        content = self._lines([[*self._source.header, *self._added.names]])
        return _BOM + content if self._source.is_marked else content

    def encode(self, chunk: Chunk, predictions: Predictions) -> bytes:
        added = zip(chunk.rows, predictions.labels, predictions.numbers(), strict=True)
        return self._lines([[*(row.record or ()), name, *numbers] for row, name, numbers in added])

    def _lines(self, rows: Sequence[Sequence[str]]) -> bytes:
        # With this line end both of its characters are quoted in a field; it is exchanged after.
        end = "\r\n"
        content = io.StringIO(newline="")
        writer = csv.writer(content, delimiter=self._delimiter, lineterminator=end)
        if self._source.line_end == end:
            writer.writerows(rows)
            return content.getvalue().encode("utf-8")
        lines = []
        for row in rows:
            writer.writerow(row)
            lines.append(content.getvalue().removesuffix(end) + self._source.line_end)
            content.seek(0)
            content.truncate()
        return "".join(lines).encode("utf-8")


class JsonWriter(Writer):
    """JSON objects as they were read, with further fields at their end."""

    def __init__(self, added: Added) -> None:
        self._label = json.dumps(added.label, ensure_ascii=False)
        self._probabilities = [json.dumps(n, ensure_ascii=False) for n in added.probabilities]

    def encode(self, chunk: Chunk, predictions: Predictions) -> bytes:
        lines = []
        for row, label, numbers in zip(
            chunk.rows, predictions.labels, predictions.numbers(), strict=True
        ):
            fields = [f"{self._label}: {json.dumps(label, ensure_ascii=False)}"]
            fields += [f"{n}: {v}" for n, v in zip(self._probabilities, numbers, strict=True)]
            # an object that holds at least its text
            lines.append(f"{row.content.removesuffix('}').rstrip()}, {', '.join(fields)}}}\n")
        return "".join(lines).encode("utf-8")


class Packed(Writer):
    """Header and chunks, each compressed by itself: one after the other they are one file."""

    def __init__(self, lines: Writer, compression: str) -> None:
        self._lines, self._compression = lines, compression

    def header(self) -> bytes:
        """That of the lines; also where it is empty, for an empty file is not compressed."""
        return self._packed(self._lines.header())

    def encode(self, chunk: Chunk, predictions: Predictions) -> bytes:
        return self._packed(self._lines.encode(chunk, predictions))

    def _packed(self, content: bytes) -> bytes:
        if self._compression == "gzip":
            return gzip.compress(content, mtime=0)
        return bytes(pa.Codec("zstd").compress(content, asbytes=True))


class ParquetWriter(Writer):
    """Arrow streams, one a chunk, of which a Parquet or Arrow file is made at the end."""

    def __init__(self, schema: pa.Schema, kind: str, added: Added) -> None:
        self._kind = kind
        fields = [pa.field(added.label, pa.string())]
        fields += [pa.field(name, pa.float32()) for name in added.probabilities]
        for field in fields:
            schema = schema.append(field)
        self._schema = schema

    def header(self) -> bytes:
        """The schema."""
        return self._stream(None)

    def encode(self, chunk: Chunk, predictions: Predictions) -> bytes:
        assert chunk.columns is not None
        columns = [pa.array(predictions.labels, pa.string())]
        columns += [pa.array(column) for column in predictions.probabilities.T]
        arrays = [*chunk.columns.columns, *columns]
        return self._stream(pa.Table.from_arrays(arrays, schema=self._schema))

    def finish(self, part: Path, whole: Path) -> bool:
        to_parquet = self._kind == "parquet"
        with (pq.ParquetWriter if to_parquet else pa.ipc.new_file)(whole, self._schema) as writer:
            for group in self._groups(part):
                writer.write_table(group, group.num_rows)
        return True

    def _groups(self, part: Path) -> Iterator[pa.Table]:
        """The rows of `part` in tables of some size: chunks are too small for row groups."""
        size, waiting, rows, room = part.stat().st_size, [], 0, 0
        with pa.OSFile(str(part), "rb") as file:
            while file.tell() < size:
                table = pa.ipc.open_stream(file).read_all()
                waiting.append(table)
                rows, room = rows + table.num_rows, room + table.nbytes
                if rows >= GROUP_ROWS or room >= GROUP_BYTES:
                    yield pa.concat_tables(waiting)
                    waiting, rows, room = [], 0, 0
        if rows:
            yield pa.concat_tables(waiting)

    def _stream(self, table: pa.Table | None) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as stream:
            if table is not None:
                stream.write_table(table)
        return bytes(sink.getvalue())
