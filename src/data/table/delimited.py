"""CSV and TSV: the separator is found by the first rows, fields may hold line breaks in quotes.

Python's `csv`, in its strict mode, is the parser: on files with blemishes `pyarrow`, `polars`,
`duckdb` and `datasets` (pandas) each take some for good that hold something else (a quote that is
never closed, text after a closing quote, null characters, rows that are too short), or refuse texts
that are longer than their blocks.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, Lines
from src.errors import UserError
from src.files.checksum import sha256_of

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that are looked for, and what they are called."""
_TRIED = 20
"""Rows by which a separator is told."""
_TRIED_LINES = 1000
"""In at most so many lines, as a double quote that is never closed would make one row of all."""


class DelimitedTable(Table):
    """A table whose first row names the columns; double quotes may surround a field.

    Blank lines are left out, and the values of columns without a name.

    Args:
        lines: UTF-8, with or without a byte order mark.
        separator: the one that the file's name promises.

    Attributes:
        separator: the one that was found.
        line_end: what ends the header.

    Raises:
        UserError: the header is malformed, or names a column twice.
    """

    def __init__(self, lines: Lines, path: Path | None, separator: str) -> None:
        self.source, self._lines, self._path = lines.name, lines, path
        first = next((line for _, line in self._parts() if line.strip()), "")
        told = re.fullmatch(r'"?sep=(.)"?', first.strip("\r\n"))  # Excel's own way of saying it
        self._first_is_no_header = told is not None
        self.separator = told[1] if told else self._found(separator)
        if self.separator != separator:
            self.remark = f"{self._separator_name} separate its columns"
        self.line_end = "\r\n" if first.endswith("\r\n") else "\n"
        _, self.header = next(self._records(self.separator), (0, []))
        self._names = [name.strip() for name in self.header]
        self.columns = tuple(name for name in self._names if name)
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise UserError(
                f"{self.source}: its header names the column {twice[0]!r} twice; rename one"
            )

    @property
    def is_marked(self) -> bool:
        """Whether the file begins with a byte order mark."""
        return self._lines.is_marked

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`; a row's number is the line it begins at, all values are text."""
        records = self._records(self.separator, last=last)
        next(records, None)
        for number, record in records:
            if len(record) != len(self._names):
                raise UserError(
                    f"{self.where(number)}: {_fields(len(record))}, but the header has "
                    f"{len(self._names)} ({', '.join(map(repr, self._names))}); put a text "
                    f"that holds {self._separator_name} or line breaks in double quotes"
                )
            values = zip(self._names, record, strict=True)
            yield Row(number, {name: value for name, value in values if name}, record)

    def fingerprint(self) -> str:
        return "" if self._path is None else sha256_of(self._path)

    def progress(self) -> tuple[int, int | None]:
        return self._lines.progress()

    @property
    def _separator_name(self) -> str:
        return SEPARATORS.get(self.separator, repr(self.separator))

    def _found(self, expected: str) -> str:
        """The separator by which the first rows have most columns, and equally many."""

        def fit(separator: str) -> tuple[bool, int]:
            widths: list[int] = []
            try:
                widths += (
                    len(r) for _, r in islice(self._records(separator, _TRIED_LINES), _TRIED)
                )
            except UserError:
                return False, widths[0] if widths else 0
            even = len(set(widths)) == 1
            return even and widths[0] > 1, widths[0] if widths else 0

        return max([expected, *(s for s in SEPARATORS if s != expected)], key=fit)

    def _records(
        self, separator: str, most: int | None = None, last: bool = False
    ) -> Iterator[tuple[int, list[str]]]:
        """Rows with the lines they begin at, the header first, blank ones left out."""
        csv.field_size_limit(LONGEST_ROW)
        lines = _Numbered(line for _, line in islice(self._parts(last), most))
        if self._first_is_no_header:
            next(lines, None)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        width = None
        while True:
            begins = lines.number + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise UserError(f"{self.where(begins)}: {_reason(error)}") from error
            if sum(map(len, record)) > LONGEST_ROW:
                raise UserError(f"{self.where(begins)}: {_TOO_LONG}")
            if any(field.strip() for field in record) or (record and len(record) == width):
                width = width or len(record)
                yield begins, record

    _first_is_no_header = False

    def _parts(self, last: bool = False) -> Iterator[tuple[int, str]]:
        for number, line in self._lines.read(last):
            if "\r" in line:  # a carriage return alone ends a line too
                yield from ((number, part) for part in io.StringIO(line, newline=""))
            else:
                yield number, line


class _Numbered(Iterator[str]):
    """Lines, and the number of the last one that was taken."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.number = lines, 0

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line


_TOO_LONG = (
    f"a row of more than {LONGEST_ROW >> 20} MiB; or a double quote that opens in it is never "
    "closed"
)


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def _reason(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "a double quote that opens in this row is never closed"
    if "expected after" in str(error):
        return 'a double quote inside a quoted field must be written twice ("")'
    if "field limit" in str(error):
        return _TOO_LONG
    return str(error)
