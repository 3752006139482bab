"""Rows of CSV and TSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from src.errors import UserError
from src.predict.chunks import Chunk, chunks_of
from src.predict.columns import Added, Wanted
from src.predict.lines import Lines, Place

_LARGEST_FIELD = (1 << 31) - 1

csv.field_size_limit(_LARGEST_FIELD)


class CsvRows:
    """CSV with a header, as Excel and pandas write it; quoted fields may hold line breaks.

    Attributes:
        columns: the header.
        delimiter: between fields.
        line_end: what ends the header.
        marked: whether the file begins with a byte order mark.
    """

    def __init__(self, lines: Lines, delimiter: str, wanted: Wanted, added: Added) -> None:
        self._lines = lines
        self.delimiter = delimiter
        self.line_end = "\n"
        header = next(self._records(), None)
        if header is None:
            raise UserError(f"{lines.name} is empty; its first line has to name the columns")
        self.columns = header
        repeated = [name for i, name in enumerate(header) if name in header[:i]]
        if repeated:
            raise UserError(f"{lines.where}: two columns are named {repeated[0]!r}")
        found = wanted.found_in(header, header, lines.where)
        added.check_free(header, lines.where)
        self._text = header.index(found.text)
        self._pair = None if found.pair is None else header.index(found.pair)
        self.marked = lines.marked

    def chunks(self, after: dict[str, Any] | None) -> Iterator[Chunk[list[list[str]]]]:
        if after is not None:
            self._lines.skip_to(Place(**after))
        return chunks_of(self._lines, self._rows())

    def progress(self) -> tuple[int, int | None]:
        return self._lines.progress()

    def close(self) -> None:
        self._lines.close()

    def _rows(self) -> Iterator[tuple[list[str], int, str, str | None]]:
        for row in self._records():
            if len(row) != len(self.columns):
                raise UserError(
                    f"{self._lines.where}: {len(row)} fields, but the header has "
                    f"{len(self.columns)}; put a field that holds the delimiter or a line break in "
                    "double quotes"
                )
            pair = None if self._pair is None else row[self._pair]
            yield row, sum(map(len, row)), row[self._text], pair

    def _records(self) -> Iterator[list[str]]:
        """Records; a blank line is none."""
        reader = csv.reader(self._ends_noted(), delimiter=self.delimiter, strict=True)
        while True:
            begins = self._lines.line + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise UserError(
                    f"{self._lines.name}, line {begins}: not CSV ({error}); a double quote in a "
                    "field is written twice, and the field in double quotes"
                ) from error
            if record:
                yield record

    def _ends_noted(self) -> Iterator[str]:
        for line in self._lines:
            if self._lines.line == 1 and line.endswith("\r\n"):
                self.line_end = "\r\n"
            yield line
