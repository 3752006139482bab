"""JSONL: an object a line; and JSON: a list of objects.

Python's `json` is the parser: `pyarrow`, `polars` and `duckdb` fit all rows into one schema, by
which a missing text becomes null, a number becomes text, a text that looks like a date a date, and
a field that first comes late an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, Lines
from src.errors import UserError

_OBJECT = 'expected an object, {"NAME": VALUE, ...}'
_BLANK = re.compile(r"[ \t\r\n]*")


class JsonTable(Table):
    """Objects one after the other; `columns` are the fields of the first rows.

    Each line holds an object, and blank lines are left out; or, in a file of the kind `json`, the
    first character may open one list of objects, over any number of lines.

    Raises:
        UserError: one of the first rows is no object.
    """

    entry = "field"
    schema = pa.schema([("record", pa.string())])

    def __init__(self, lines: Lines, kind: str) -> None:
        self.source, self.path, self._lines = lines.name, lines.path, lines
        self._is_list = kind == "json" and _Text(lines).next() == "["
        self.unit = "row" if self._is_list else "line"
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`."""
        if self._is_list:
            yield from self._items()
            return
        for number, line in self._lines.read(last):
            if record := line.strip(" \t\r\n"):
                where = self.where(number)
                try:
                    values = _DECODER.decode(record)
                except (ValueError, RecursionError) as error:
                    raise _malformed(error, where) from error
                if not isinstance(values, dict):
                    raise UserError(f"{where}: {_OBJECT}")
                yield Row(number, values, (record,))

    def progress(self) -> tuple[int, int | None]:
        return self._lines.progress()

    def _items(self) -> Iterator[Row]:
        """The list's items, of which one is in memory at a time."""
        text = _Text(self._lines)
        text.take("[")
        number, closed = 0, text.take("]")
        while not closed:
            number += 1
            if text.next() != "{":
                raise UserError(f"{self.where(number)}: {_OBJECT}")
            values, record = text.value(self.where(number))
            # line breaks stand between the parts of an object only: in strings they are escaped
            yield Row(number, values, (record.replace("\r", " ").replace("\n", " "),))
            closed = text.take("]")
            if not closed and not text.take(","):
                raise UserError(f"{self.source}, after row {number}: not JSON (expected a comma)")
        if text.next():
            raise UserError(f"{self.source}: not JSON (something follows the list)")


class _Text:
    """Text that comes in pieces, and how far it is read."""

    def __init__(self, lines: Lines) -> None:
        self._pieces = lines.read(in_pieces=True)
        self._held, self._at = "", 0

    def next(self) -> str:
        """The next character that is no white space; none at the end."""
        while True:
            self._at = _BLANK.match(self._held, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._held) or not self._more(1):
                return self._held[self._at : self._at + 1]

    def take(self, character: str) -> bool:
        """Whether this character came next; it is then behind."""
        found = self.next() == character
        self._at += found
        return found

    def value(self, where: str) -> tuple[dict[str, Any], str]:
        """The object that comes next, and how it is written.

        Raises:
            UserError: it is malformed, or longer than `LONGEST_ROW`.
        """
        while True:
            begins = self._at
            try:
                value, self._at = _DECODER.raw_decode(self._held, begins)
            except (ValueError, RecursionError) as error:
                size = len(self._held) - begins
                if size > LONGEST_ROW:
                    message = f"longer than {LONGEST_ROW >> 20} MiB, or not JSON"
                    raise UserError(f"{where}: {message}") from error
                if isinstance(error, _RepeatedError) or not self._more(size):
                    raise _malformed(error, where) from error
            else:
                return value, self._held[begins : self._at]

    def _more(self, least: int) -> bool:
        """Hold so many more characters, or all there are; whether there was one."""
        before = len(self._held) - self._at
        found = [self._held[self._at :]]
        while sum(map(len, found)) < before + least and (piece := next(self._pieces, None)):
            found.append(piece[1])
        self._held, self._at = "".join(found), 0
        return len(self._held) > before


class _RepeatedError(ValueError):
    """An object has a field twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1))
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


def _malformed(error: Exception, where: str) -> UserError:
    if isinstance(error, json.JSONDecodeError):
        return UserError(f"{where}: not JSON ({error.msg}, column {error.colno})")
    if isinstance(error, _RepeatedError):
        return UserError(f"{where}: names the field {str(error)!r} twice; rename one")
    if isinstance(error, RecursionError):
        return UserError(f"{where}: its brackets are nested too deeply")
    return UserError(f"{where}: holds a number of too many digits")
