"""Rows with their predictions as bytes: a header, chunks to append, and what makes a file of them.

Of a row, what was read is written: fields of CSV as text, JSON objects character for character,
columns of Parquet with their types.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from src.predict.chunks import Reader
from src.predict.columns import Added
from src.predict.csv_rows import CsvRows
from src.predict.formats import Format
from src.predict.parquet_rows import ParquetRows

R = TypeVar("R", contravariant=True)
_BOM = b"\xef\xbb\xbf"
GROUP_ROWS = 1 << 16
"""A row group of Parquet ends with the chunk that reaches this."""
GROUP_BYTES = 1 << 26
"""Or this, in memory."""


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


class Writer(Protocol[R]):
    """Makes bytes of chunks; the bytes of a chunk depend on it alone."""

    def header(self) -> bytes:
        """What comes before the first chunk."""
        ...

    def encode(self, rows: R, predictions: Predictions) -> bytes:
        """A chunk's rows."""
        ...

    def finish(self, part: Path, whole: Path) -> bool:
        """Make the file `whole` of `part`, which holds header and chunks.

        Returns:
            Whether it did; if not, `part` is whole as it is.
        """
        ...


def writer_for(reader: Reader[Any], kind: Format, added: Added) -> Writer[Any]:
    """The writer for what `reader` reads."""
    if isinstance(reader, ParquetRows):
        return ParquetWriter(reader.schema, added)
    lines: CsvWriter | JsonWriter
    if isinstance(reader, CsvRows):
        lines = CsvWriter(reader, "\t" if kind.name == "tsv" else ",", added)
    else:
        lines = JsonWriter(added)
    return Gzipped(lines) if kind.gzipped else lines


class CsvWriter:
    """CSV with the input's line ends, and its byte order mark."""

    def __init__(self, source: CsvRows, delimiter: str, added: Added) -> None:
        self._source, self._delimiter, self._added = source, delimiter, added

    def header(self) -> bytes:
        """The names of all columns."""
        content = self._lines([[*self._source.columns, *self._added.names]])
        return _BOM + content if self._source.marked else content

    def encode(self, rows: list[list[str]], predictions: Predictions) -> bytes:
        added = zip(rows, predictions.labels, predictions.numbers(), strict=True)
        return self._lines([[*row, label, *numbers] for row, label, numbers in added])

    def finish(self, part: Path, whole: Path) -> bool:
        return False

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


class JsonWriter:
    """JSON objects as they were read, with further fields at their end."""

    def __init__(self, added: Added) -> None:
        self._label = json.dumps(added.label, ensure_ascii=False)
        self._probabilities = [json.dumps(n, ensure_ascii=False) for n in added.probabilities]

    def header(self) -> bytes:
        """Nothing."""
        return b""

    def encode(self, rows: list[str], predictions: Predictions) -> bytes:
        lines = []
        for row, label, numbers in zip(
            rows, predictions.labels, predictions.numbers(), strict=True
        ):
            fields = [f"{self._label}: {json.dumps(label, ensure_ascii=False)}"]
            fields += [f"{n}: {v}" for n, v in zip(self._probabilities, numbers, strict=True)]
            # an object that holds at least its text
            lines.append(f"{row.removesuffix('}').rstrip()}, {', '.join(fields)}}}\n")
        return "".join(lines).encode("utf-8")

    def finish(self, part: Path, whole: Path) -> bool:
        return False


class Gzipped:
    """Header and chunks, each compressed by itself: one after the other they are a gzip file."""

    def __init__(self, lines: CsvWriter | JsonWriter) -> None:
        self._lines = lines

    def header(self) -> bytes:
        """That of the lines; also where it is empty, for an empty file is not gzip."""
        return gzip.compress(self._lines.header(), mtime=0)

    def encode(self, rows: Any, predictions: Predictions) -> bytes:
        return gzip.compress(self._lines.encode(rows, predictions), mtime=0)

    def finish(self, part: Path, whole: Path) -> bool:
        return False


class ParquetWriter:
    """Arrow streams, one a chunk, of which a Parquet file is made at the end."""

    def __init__(self, schema: pa.Schema, added: Added) -> None:
        self._added = added
        fields = [pa.field(added.label, pa.string())]
        fields += [pa.field(name, pa.float32()) for name in added.probabilities]
        for field in fields:
            schema = schema.append(field)
        self._schema = schema

    def header(self) -> bytes:
        """The schema."""
        return self._stream(None)

    def encode(self, rows: pa.Table, predictions: Predictions) -> bytes:
        columns = [pa.array(predictions.labels, pa.string())]
        columns += [pa.array(column) for column in predictions.probabilities.T]
        arrays = [*rows.columns, *columns]
        return self._stream(pa.Table.from_arrays(arrays, schema=self._schema))

    def finish(self, part: Path, whole: Path) -> bool:
        with pq.ParquetWriter(whole, self._schema) as writer:
            for group in self._groups(part):
                writer.write_table(group, row_group_size=group.num_rows)
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
