"""CSV and TSV: the separator is found by the header, fields may hold line breaks in quotes."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from src.data.checksum import sha256_of
from src.data.table.base import Row, Table
from src.data.table.lines import text_lines
from src.errors import UserError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that are looked for, and what they are called."""
_LONGEST_FIELD = 2**31 - 1
"""Characters; the library's own limit is less than many a document has."""


class DelimitedTable(Table):
    """A file whose first row names the columns; double quotes may surround a field.

    Rows of empty fields only, which spreadsheets leave at the end, are left out. So are columns
    without a name.

    Args:
        path: UTF-8, with or without a byte order mark, plain or gzipped.
        separator: the one that the file's name promises.

    Raises:
        UserError: the header is malformed, or names a column twice.
    """

    def __init__(self, path: Path, separator: str) -> None:
        self.source = str(path)
        self._path = path
        first = next((line for _, line in self._lines() if line.strip()), "")
        told = re.fullmatch(r'"?sep=(.)"?', first.strip("\r\n"))  # Excel's own way of saying it
        self._first_is_no_header = told is not None
        self._separator = told[1] if told else _separator_of(first, separator)
        if self._separator != separator:
            name = SEPARATORS.get(self._separator, repr(self._separator))
            self.remark = f"{name} separate its columns"
        _, header = next(self._records(), (0, []))
        self._header = [name.strip() for name in header]
        self.columns = tuple(name for name in self._header if name)
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise UserError(f"{path}: its header names the column {twice[0]!r} twice; rename one")

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; a row's number is the line it begins at, all values are text."""
        records = self._records()
        next(records, None)
        for number, record in records:
            if len(record) != len(self._header):
                name = SEPARATORS.get(self._separator, repr(self._separator))
                raise UserError(
                    f"{self.where(number)}: {_fields(len(record))}, but the header has "
                    f"{len(self._header)} ({', '.join(map(repr, self._header))}); put a text "
                    f"that holds {name} or line breaks in double quotes"
                )
            values = zip(self._header, record, strict=True)
            yield Row(number, {name: value for name, value in values if name})

    def fingerprint(self) -> str:
        return sha256_of(self._path)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows with the lines they begin at, the header first, blank ones left out."""
        csv.field_size_limit(_LONGEST_FIELD)
        lines = _Numbered(line for _, line in self._lines())
        if self._first_is_no_header:
            next(lines, None)
        reader = csv.reader(lines, delimiter=self._separator, strict=True)
        while True:
            begins = lines.number + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise UserError(f"{self.where(begins)}: {_reason(error)}") from error
            if any(field.strip() for field in record):
                yield begins, record

    def _lines(self) -> Iterator[tuple[int, str]]:
        number = 0
        for _, line in text_lines(self._path, marked=True):
            for part in io.StringIO(line, newline=""):  # a carriage return alone ends a line too
                number += 1
                yield number, part


class _Numbered(Iterator[str]):
    """Lines, and the number of the last one that was taken."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.number = lines, 0

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line


def _separator_of(header: str, expected: str) -> str:
    """The separator that gives the header most columns; of equals, the expected one."""
    candidates = [expected, *(s for s in SEPARATORS if s != expected)]
    return max(
        candidates, key=lambda separator: len(next(csv.reader([header], delimiter=separator), []))
    )


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


def _reason(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "a double quote that opens in this row is never closed"
    if "expected after" in str(error):
        return 'a double quote inside a quoted field must be written twice ("")'
    return str(error)
