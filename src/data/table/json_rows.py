"""Reads JSONL (one object a line) and JSON (a list of objects).

Python's `json` is the parser: `pyarrow`, `polars` and `duckdb` fit all rows into one schema, by
which a missing text becomes null, a number becomes text, a text that looks like a date a date, and
a field that first comes late an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from src.data.table.base import Row, Table
from src.data.table.lines import LONGEST_ROW, Lines
from src.errors import UserError

_OBJECT = 'expected an object, {"NAME": VALUE, ...}'
_BLANK = re.compile(r"[ \t\r\n]*")
_FOLLOWING = {"[": "{]", ",": "{", "]": ""}
"""Characters that may come next in a list, by the one that came last; after an
object, `,` or `]`.
"""


class JsonTable(Table):
    """A table of JSON objects; its columns are the fields of the first rows.

    Each line holds an object, and blank lines are left out; or, in a file of the kind `json`, the
    first character may open one list of objects, over any number of lines.

    Raises:
        UserError: one of the first rows is not an object.
    """

    entry = "field"
    schema = pa.schema([("record", pa.string())])

    def __init__(self, lines: Lines, kind: str) -> None:
        self.source, self.path, self._lines = lines.name, lines.path, lines
        first = (piece.lstrip() for _, piece in lines.read(in_pieces=True) if piece.strip())
        self._is_list = kind == "json" and next(first, "").startswith("[")
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
        """Yield the list's items, of which one is in memory at a time."""
        held, least, number, expected = "", 0, 0, "["
        for piece in chain((piece for _, piece in self._lines.read(in_pieces=True)), [""]):
            held, at = held + piece, 0
            if piece and len(held) < least:
                continue
            while (at := _BLANK.match(held, at).end()) < len(held):  # type: ignore[union-attr]
                found = held[at]
                if found not in expected:
                    raise self._unexpected(number, expected)
                if found != "{":
                    at, expected = at + 1, _FOLLOWING[found]
                    continue
                try:
                    values, end = _DECODER.raw_decode(held, at)
                except (ValueError, RecursionError) as error:
                    where, least = self.where(number + 1), 2 * (len(held) - at)
                    if least > 2 * LONGEST_ROW:
                        message = f"longer than {LONGEST_ROW >> 20} MiB, or not JSON"
                        raise UserError(f"{where}: {message}") from error
                    if not piece or isinstance(error, _RepeatedError):
                        raise _malformed(error, where) from error
                    break  # the rest of it may come yet
                # line breaks stand between the parts of an object only: in strings they are escaped
                record = held[at:end].replace("\r", " ").replace("\n", " ")
                at, number, expected = end, number + 1, ",]"
                yield Row(number, values, (record,))
            held = held[at:]
        if expected:
            raise self._unexpected(number, expected)

    def _unexpected(self, number: int, expected: str) -> UserError:
        if "{" in expected:
            return UserError(f"{self.where(number + 1)}: {_OBJECT}")
        if expected:
            return UserError(f"{self.source}, after row {number}: not JSON (expected a comma)")
        return UserError(f"{self.source}: not JSON (something follows the list)")


class _RepeatedError(ValueError):
    """Raised where an object has the same field twice."""


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
