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

import pyarrow as pa

from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, Lines
from src.errors import UserError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that are looked for, and what they are called."""
_TRIED, _TRIED_LINES = 20, 1000
"""Rows by which a separator is told, and lines in which they are: a double quote that is never
closed would make one row of all."""
_TOO_LONG = (
    f"a row of more than {LONGEST_ROW >> 20} MiB; or a double quote that opens in it is never "
    "closed"
)
_REASONS = {
    "unexpected end of data": "a double quote that opens in this row is never closed",
    "expected after": 'a double quote inside a quoted field must be written twice ("")',
    "field limit": _TOO_LONG,
}
"""Messages of the `csv` module, by a part of them, in plain words."""


class DelimitedTable(Table):
    """A table whose first row names the columns; double quotes may surround a field.

    Blank lines are left out, and the values of columns without a name.

    Args:
        separator: the one that the file's name promises.

    Attributes:
        separator: the one that was found.
        line_end: what ends the header.
        lines: UTF-8, with or without a byte order mark.

    Raises:
        UserError: the header is malformed, or names a column twice.
    """

    def __init__(self, lines: Lines, separator: str) -> None:
        self.source, self.path, self.lines = lines.name, lines.path, lines
        first = next((line for line in self._parts() if line.strip()), "")
        told = re.fullmatch(r'"?sep=(.)"?', first.strip("\r\n"))  # Excel's own way of saying it
        self._before = 0 if told is None else 1
        self.separator = told[1] if told else self._found(separator)
        self._separators = SEPARATORS.get(self.separator, repr(self.separator))
        if self.separator != separator:
            self.remark = f"{self._separators} separate its columns"
        self.line_end = "\r\n" if first.endswith("\r\n") else "\n"
        _, self.header = next(self._records(self.separator), (0, []))
        self.schema = pa.schema([(name, pa.string()) for name in self.header])
        self._names = [name.strip() for name in self.header]
        self.columns = tuple(name for name in self._names if name)
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise UserError(
                f"{self.source}: its header names the column {twice[0]!r} twice; rename one"
            )

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`; a row's number is the line it begins at, all values are text."""
        for number, record in islice(self._records(self.separator, last=last), 1, None):
            if len(record) != len(self._names):
                found = f"{len(record)} field{'' if len(record) == 1 else 's'}"
                raise UserError(
                    f"{self.where(number)}: {found}, but the header has {len(self._names)} "
                    f"({', '.join(map(repr, self._names))}); put a text that holds "
                    f"{self._separators} or line breaks in double quotes"
                )
            values = zip(self._names, record, strict=True)
            yield Row(number, {name: value for name, value in values if name}, record)

    def progress(self) -> tuple[int, int | None]:
        return self.lines.progress()

    def _found(self, expected: str) -> str:
        """The separator by which the first rows have most columns, and equally many."""

        def fit(separator: str) -> tuple[bool, int]:
            widths: list[int] = []
            try:
                for _, record in islice(self._records(separator, _TRIED_LINES), _TRIED):
                    widths.append(len(record))
            except UserError:
                return False, max(widths[:1], default=0)
            return len(set(widths)) == 1 and widths[0] > 1, max(widths[:1], default=0)

        return max([expected, *(s for s in SEPARATORS if s != expected)], key=fit)

    def _records(
        self, separator: str, most: int | None = None, last: bool = False
    ) -> Iterator[tuple[int, list[str]]]:
        """Rows with the lines they begin at, the header first, blank ones left out."""
        csv.field_size_limit(LONGEST_ROW)
        lines = islice(self._parts(last), self._before, most)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        width, number = None, self._before
        try:
            for record in reader:
                begins, number = number + 1, self._before + reader.line_num
                if sum(map(len, record)) > LONGEST_ROW:
                    raise UserError(f"{self.where(begins)}: {_TOO_LONG}")
                if any(field.strip() for field in record) or (record and len(record) == width):
                    width = width or len(record)
                    yield begins, record
        except csv.Error as error:
            told = str(error)
            said = next((said for part, said in _REASONS.items() if part in told), told)
            raise UserError(f"{self.where(number + 1)}: {said}") from error

    _before = 0

    def _parts(self, last: bool = False) -> Iterator[str]:
        for _, line in self.lines.read(last):
            if "\r" in line:  # a carriage return alone ends a line too
                yield from io.StringIO(line, newline="")
            else:
                yield line
