"""Reads CSV, TSV, JSON and lines of text, plain or compressed, as tables.

Python's `csv`, in its strict mode, and `json` are the parsers. On files with blemishes `pyarrow`,
`polars`, `duckdb` and `datasets` each read some malformed CSV without an error, with wrong values;
and they fit rows of JSON into one schema, by which a missing text becomes null, or a number text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

import pyarrow as pa

from tartan.data.table.base import Row, Table, check_names
from tartan.errors import UserError, first_line

LONGEST_ROW = 1 << 24
"""Maximum length of a line and of a field [characters]. No task's text is as long, and without it a
missing double quote or line break would fill the memory.
"""
UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError)
"""Exceptions by which the system, decompressors and Arrow report files that cannot be read."""
SEPARATORS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MOST_VALUES = 1000
"""Number of different values at which a column is one of texts, not of classes."""
Quoting: TypeAlias = Literal["standard", "none"]
"""`standard` for fields that may be in double quotes; `none` where these are ordinary characters"""


class TextTable(Table):
    """Base of tables in text files."""

    path: Path

    def __init__(self, path: Path, compression: str | None, source: str) -> None:
        self.path, self.source = path, source
        self._compression = compression
        self._raw: IO[bytes] | None = None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers and ends: a line feed, carriage return or both."""
        number = 0
        try:
            with (
                unpacked(self.path, self._compression) as (self._raw, file),
                io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="") as text,
            ):
                lines = iter(lambda: text.readline(LONGEST_ROW + 1), "")
                for number, line in enumerate(lines, start=1):
                    if flaw := _flaw_of(line):
                        raise UserError(f"{self.place(number)}: {flaw}")
                    yield number, line.removeprefix("\ufeff") if number == 1 else line
        except UNREADABLE as error:
            raise UserError(
                f"{self.source} cannot be read after line {number}: {first_line(error)}"
            ) from error

    def progress(self) -> tuple[int, int | None]:
        """Return the number of the file's bytes that were read, and its size."""
        read = self._raw.tell() if self._raw and not self._raw.closed else 0
        return read, self.path.stat().st_size


class TextLines(TextTable):
    """A table of one column, `text`, which has the lines of a text; blank ones are rows too."""

    columns = ("text",)
    schema = pa.schema([("text", pa.string())])

    def rows(self) -> Iterator[Row]:
        for number, line in self.lines():
            text = line.rstrip("\r\n")
            yield Row(number, {"text": text}, self.place(number), (text,))


class DelimitedTable(TextTable):
    """CSV or TSV: the first row names the columns; quoted fields may hold line breaks.

    Blank lines are left out, and the values of columns without a name.

    Args:
        usual: the separator that the file's name implies; one that the header has more of is taken.
        quoting: whether double quotes may surround a field.

    Attributes:
        separator: the separator.
    """

    def __init__(
        self, path: Path, compression: str | None, source: str, usual: str, quoting: Quoting
    ) -> None:
        super().__init__(path, compression, source)
        quotes: Any = csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL
        first = [line for _, line in islice(self.lines(), 20)]
        header = next((line for line in first if line.strip()), "")
        widths = {
            separator: len(next(csv.reader([header], delimiter=separator, quoting=quotes), []))
            for separator in (usual, *SEPARATORS)
        }
        self.usual, self.separator = usual, max(widths, key=widths.__getitem__)
        # a blank before a quote would make the quotes part of the text
        blanks = any(re.search(rf'{re.escape(self.separator)} +"(?!")', line) for line in first)
        self._options: dict[str, Any] = {"quoting": quotes, "skipinitialspace": blanks}
        _, names = next(self._records(), (0, []))
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self._names = [name.strip() for name in names]
        self.columns = tuple(name for name in self._names if name)
        check_names(f"{source}: its header", self.columns)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; rows are numbered by their first line, and all values are strings."""
        width = len(self._names)
        header = [name.strip('"') for name in self._names]
        seen: dict[int, set[str]] = defaultdict(set)  # the first different values of each column
        for number, record in islice(self._records(), 1, None):
            place = self.place(number)
            if len(record) != width:
                raise UserError(
                    f"{place}: {len(record)} fields, but the header has {width}; a text that holds "
                    f"{self.separator!r} or line breaks has to be in double quotes"
                )
            # a file in the middle of others may begin with a mark
            if width > 1 and [field.strip('\ufeff "') for field in record] == header:
                raise UserError(f"{place}: repeats the header; remove the line")
            for column, field in enumerate(record):
                if len(seen[column]) < _MOST_VALUES:
                    seen[column].add(field.strip())
            self._check_swallowed(number, record, seen)
            values = zip(self._names, record, strict=True)
            yield Row(number, {name: value for name, value in values if name}, place, record)

    def _check_swallowed(self, number: int, record: list[str], seen: dict[int, set[str]]) -> None:
        """Check that the lines in a quoted field are no rows, which a stray quote has swallowed.

        Those have as many fields as the header, and in the other columns of one of them are values
        that occur in rows before, or numbers among numbers.
        """
        width = len(record)
        for column, field in enumerate(record):
            lines = field.splitlines()
            # of the line with the quote, and of the last one, a part is in other fields
            first, last = int(column > 0), len(lines) - int(column < width - 1)
            rows = [line.split(self.separator) for line in lines[first:last]]
            if width == 1 or len(lines) < 2 or any(len(row) != width for row in rows):
                continue
            for place, values in enumerate(rows, start=number + first):
                others = [(c, value.strip(' "')) for c, value in enumerate(values) if c != column]
                if all(_occurs(value, seen[c], width) for c, value in others) and any(
                    map(str.isalpha, values[column])
                ):
                    raise UserError(
                        f"{self.place(place)}: a row inside a quoted field, which a double quote "
                        'without its counterpart opens; write it twice in a quoted field (""), '
                        "or use quoting=none"
                    )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the fields of each row: header first, no blank rows."""
        csv.field_size_limit(LONGEST_ROW)
        lines = (line for _, line in self.lines())
        reader = csv.reader(lines, delimiter=self.separator, strict=True, **self._options)
        width, number = None, 0
        try:
            for record in reader:
                begins, number = number + 1, reader.line_num
                if any(field.strip() for field in record) or (record and len(record) == width):
                    width = width or len(record)
                    yield begins, record
        except csv.Error as error:
            raise UserError(
                f"{self.place(number + 1)}: {first_line(error)} (a double quote inside a quoted "
                'field must be written twice, "", and a quote that opens must be closed)'
            ) from error


class JsonTable(TextTable):
    """A table of JSON objects, one on each line, or in a file of the kind `json`, in one list."""

    schema = pa.schema([("record", pa.string())])

    def __init__(self, path: Path, compression: str | None, source: str, kind: str) -> None:
        super().__init__(path, compression, source)
        first = next((line for _, line in self.lines() if line.strip()), "")
        self._is_list = kind == "json" and first.lstrip().startswith("[")
        self.unit = "row" if self._is_list else "line"
        self.columns = self.names_in_sample()

    def rows(self) -> Iterator[Row]:
        if self._is_list:
            whole = _decoded("".join(line for _, line in self.lines()), self.source)
            for number, values in enumerate(whole, start=1):
                yield self._row(number, values, json.dumps(values, ensure_ascii=False))
            return
        for number, line in self.lines():
            if record := line.strip(" \t\r\n"):
                yield self._row(number, _decoded(record, self.place(number)), record)

    def _row(self, number: int, values: Any, record: str) -> Row:
        if not isinstance(values, dict):
            raise UserError(f'{self.place(number)}: expected an object, {{"NAME": VALUE, ...}}')
        return Row(number, values, self.place(number), (record,))


@contextmanager
def unpacked(path: Path, compression: str | None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file; yield its raw bytes, and the same file decompressed."""
    with path.open("rb") as raw:
        if compression == "gzip":
            yield raw, cast(IO[bytes], gzip.GzipFile(fileobj=raw))
        elif compression == "zstd":
            yield raw, io.BufferedReader(cast(Any, pa.CompressedInputStream(raw, "zstd")))
        else:
            yield raw, raw


def _flaw_of(line: str) -> str | None:
    """Return what is wrong with a line, in which surrogates stand for bytes that are not UTF-8."""
    if len(line) > LONGEST_ROW:
        return f"longer than {LONGEST_ROW:,} characters"
    try:
        line.encode()
    except UnicodeEncodeError:
        return "not UTF-8; save the file as UTF-8"
    if "\0" in line:
        return "holds a null character, as UTF-16 does; save the file as UTF-8"
    return None


def _occurs(value: str, seen: set[str], width: int) -> bool:
    """Return whether a value is among others of its column, or a number among numbers."""
    is_number = width > 2 and all(map(_NUMBER.fullmatch, (value, *seen)))
    return bool(value) and (value in seen or is_number)


def _decoded(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: not JSON ({first_line(error)})") from error
