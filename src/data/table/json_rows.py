"""JSONL: an object a line; and JSON: a list of objects.

Python's `json` is the parser: `pyarrow`, `polars` and `duckdb` fit all rows into one schema, by
which a missing text becomes null, a number becomes text, a text that looks like a date a date, and
a field that first comes late an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, Lines
from src.errors import UserError
from src.files.checksum import sha256_of

_OBJECT = 'expected an object, {"NAME": VALUE, ...}'
_BLANK = " \t\r\n"


class JsonTable(Table):
    """Objects one after the other; `columns` are the fields of the first rows.

    Args:
        lines: UTF-8, with or without a byte order mark.
        is_list: whether it is one list of objects, over any number of lines; otherwise each line
            holds an object, and blank lines are left out.

    Raises:
        UserError: one of the first rows is no object.
    """

    entry = "field"

    def __init__(self, lines: Lines, path: Path | None, is_list: bool = False) -> None:
        self.source, self._lines, self._path, self._is_list = lines.name, lines, path, is_list
        if is_list:
            self.unit = "row"  # type: ignore[misc]
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def rows(self, last: bool = False) -> Iterator[Row]:
        """See `Table.rows`."""
        if self._is_list:
            yield from self._items()
            return
        for number, line in self._lines.read(last):
            if record := line.strip(_BLANK):
                values = _parsed(record, self.where(number))
                yield Row(number, _object(values, self.where(number)), record)

    def fingerprint(self) -> str:
        return "" if self._path is None else sha256_of(self._path)

    def progress(self) -> tuple[int, int | None]:
        return self._lines.progress()

    def _items(self) -> Iterator[Row]:
        """The list's items, of which one is in memory at a time."""
        text = _Text(self._lines.pieces())
        text.skip("[", f"{self.source}: expected a list of objects; or name it .jsonl")
        number, closed = 0, text.take("]")
        while not closed:
            number += 1
            where = self.where(number)
            if text.next() != "{":
                raise UserError(f"{where}: {_OBJECT}")
            values, record = text.value(where)
            # line breaks stand between the parts of an object only: in strings they are escaped
            yield Row(number, values, record.replace("\r", " ").replace("\n", " "))
            closed = text.take("]")
            if not closed:
                text.skip(",", f"{self.source}, after row {number}: not JSON (expected a comma)")
        if text.next():
            raise UserError(f"{self.source}: not JSON (something follows the list)")


class _Text:
    """Text that comes in pieces, and how far it is read."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces, self._held = pieces, ""

    def next(self) -> str:
        """The next character that is no white space; none at the end."""
        while not self._held.lstrip(_BLANK) and self._more():
            pass
        self._held = self._held.lstrip(_BLANK)
        return self._held[:1]

    def take(self, character: str) -> bool:
        """Whether this character came next; it is then behind."""
        found = self.next() == character
        self._held = self._held[1:] if found else self._held
        return found

    def skip(self, character: str, message: str) -> None:
        """Go behind this character.

        Raises:
            UserError: `message`: something else comes next.
        """
        if not self.take(character):
            raise UserError(message)

    def value(self, where: str) -> tuple[dict[str, Any], str]:
        """The object that comes next, and how it is written.

        Raises:
            UserError: it is malformed, or longer than `LONGEST_ROW`.
        """
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held)
            except (ValueError, RecursionError) as error:
                size = len(self._held)
                if size > LONGEST_ROW:
                    message = f"longer than {LONGEST_ROW >> 20} MiB, or not JSON"
                    raise UserError(f"{where}: {message}") from error
                if not self._more(size):
                    raise _malformed(error, where) from error
            else:
                record, self._held = self._held[:end], self._held[end:]
                return value, record

    def _more(self, least: int = 1) -> bool:
        """Hold so many more characters, or all there are; whether there was one."""
        found, count = [], 0
        while count < least and (piece := next(self._pieces, None)) is not None:
            found.append(piece)
            count += len(piece)
        self._held += "".join(found)
        return count > 0


def is_list(lines: Lines) -> bool:
    """Whether the file's first character that is no white space opens a list."""
    return _Text(lines.pieces()).next() == "["


class _RepeatedError(ValueError):
    """An object has a field twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1))
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: {_OBJECT}")
    return value


def _parsed(text: str, where: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(error, where) from error


def _malformed(error: Exception, where: str) -> UserError:
    if isinstance(error, json.JSONDecodeError):
        return UserError(f"{where}: not JSON ({error.msg}, column {error.colno})")
    if isinstance(error, _RepeatedError):
        return UserError(f"{where}: names the field {str(error)!r} twice; rename one")
    if isinstance(error, RecursionError):
        return UserError(f"{where}: its brackets are nested too deeply")
    return UserError(f"{where}: holds a number of too many digits")
