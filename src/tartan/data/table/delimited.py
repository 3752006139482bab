"""Reads CSV and TSV: the first rows tell the separator, quoted fields may hold line breaks.

Python's `csv`, in its strict mode, is the parser: on files with blemishes `pyarrow`, `polars`,
`duckdb` and `datasets` (pandas) each read some malformed files without an error, with wrong values
(an unclosed quote, text after a closing quote, null characters, short rows), or refuse texts that
are longer than their blocks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from tartan.data.table.base import Row, Table, check_names
from tartan.data.table.lines import LONGEST_ROW, Lines
from tartan.errors import UserError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that are tried, and their names in messages."""
_TRIED, _TRIED_LINES = 20, 1000
"""Numbers of rows and of lines by which the separator is found; a double quote that is never closed
would otherwise make one row of the whole file.
"""
_TOO_LONG = (
    f"a row of more than {LONGEST_ROW:,} characters; or a double quote that opens in it is never "
    "closed"
)
_REASONS = {
    "unexpected end of data": "a double quote that opens in this row is never closed",
    "expected after": 'a double quote inside a quoted field must be written twice ("")',
    "field limit": _TOO_LONG,
}
"""Plain messages for the errors of the `csv` module, by a part of theirs."""


class DelimitedTable(Table):
    """A table whose first row names the columns; double quotes may surround a field.

    Blank lines are left out, and the values of columns without a name.

    Args:
        lines: the file's lines.
        usual: the separator that the file's name implies.

    Attributes:
        usual: the separator that the file's name implies.
        separator: the separator that was found.
        line_end: line end of the header.

    Raises:
        UserError: the header is malformed, or names a column twice.
    """

    lines: Lines

    def __init__(self, lines: Lines, usual: str) -> None:
        self.source, self.path, self.lines, self.usual = lines.name, lines.path, lines, usual
        number, first = next(((n, line) for n, line in lines.read() if line.strip()), (0, ""))
        told = re.fullmatch(r'"?sep=(.)"?', first.strip("\r\n"))  # Excel's own way of saying it
        self._before = 0 if told is None else number
        self.separator = self._found() if told is None else told[1]
        self._separators = SEPARATORS.get(self.separator, repr(self.separator))
        if self.separator != usual:
            self.remark = f"{self._separators} separate its columns"
        self.line_end = "\r\n" if first.endswith("\r\n") else "\n"
        _, header = next(self._records(self.separator), (0, []))
        self.schema = pa.schema([(name, pa.string()) for name in header])
        self._names = [name.strip() for name in header]
        self._header = [_plain(name) for name in header]
        self.columns = tuple(name for name in self._names if name)
        check_names(f"{self.source}: its header", self.columns)

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`; rows are numbered by their first line, and all values are strings."""
        for number, record in islice(self._records(self.separator), 1, None):
            if len(record) != len(self._names):
                found = f"{len(record)} field{'' if len(record) == 1 else 's'}"
                raise UserError(
                    f"{self.where(number)}: {found}, but the header has {len(self._names)} "
                    f"({', '.join(map(repr, self._names))}); put a text that holds "
                    f"{self._separators} or line breaks in double quotes"
                )
            fields = zip(record, self._header, strict=True)
            # of most rows, only the first field is looked at
            if len(record) > 1 and all(_plain(own) == name for own, name in fields):
                raise UserError(
                    f"{self.where(number)}: repeats the header; remove the line (if the first line "
                    "is not a header, put one above it)"
                )
            values = zip(self._names, record, strict=True)
            yield Row(number, {name: value for name, value in values if name}, record)

    def _found(self) -> str:
        """Return the separator with which the first rows have the most, equally many columns."""

        def fit(separator: str) -> tuple[bool, int]:
            records = islice(self._records(separator, _TRIED_LINES), _TRIED)
            widths: list[int] = []
            try:
                widths.extend(len(record) for _, record in records)
            except UserError:
                widths.append(0)
            return len(set(widths)) == 1 and widths[0] > 1, max(widths[:1], default=0)

        return max([self.usual, *(s for s in SEPARATORS if s != self.usual)], key=fit)

    def _records(self, separator: str, most: int | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the fields of each row: header first, no blank rows."""
        csv.field_size_limit(LONGEST_ROW)
        lines = (line for _, line in islice(self.lines.read(), self._before, most))
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


def _plain(field: str) -> str:
    """Return a field as it is compared: a file in the middle of others may begin with a mark."""
    return field.lstrip("\ufeff").strip().strip('"')
