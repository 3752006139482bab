"""Reads JSONL (one object a line) and JSON (a list of objects).

Python's `json` is the parser: `pyarrow`, `polars` and `duckdb` fit all rows into one schema, by
which a missing text becomes null, a number becomes text, a text that looks like a date a date, and
a field that first comes late an error.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tartan.data.table.base import Row, Table
from tartan.data.table.lines import LONGEST_ROW, Lines
from tartan.errors import UserError

_OBJECT = 'expected an object, {"NAME": VALUE, ...}'
_PIECE = 1 << 16
"""Number of characters of a list that are read at once."""
_MALFORMED = (ValueError, RecursionError, UserError)
"""Errors of the decoder: no JSON, numbers of too many digits, deep brackets, repeated names."""
_BLANK = re.compile(r"[ \t\r\n]*")
_FOLLOWING = {"[": "{]", ",": "{", "]": ""}
"""Characters that may come next in a list, by the one that came last; an object: `,` or `]`."""
_UNEXPECTED = {
    ",]": "not JSON (a comma or ] is missing before it)",
    "": "not JSON (something follows the list)",
}
"""Messages for any other character, by those that may come next."""


class JsonTable(Table):
    """A table of JSON objects; its columns are the fields of the first rows.

    Each line holds an object, and blank lines are left out; or, in a file of the kind `json`, the
    first character may open one list of objects, over any number of lines.

    Raises:
        UserError: one of the first rows is not an object, or the only one holds columns.
    """

    entry = "field"
    schema = pa.schema([("record", pa.string())])
    lines: Lines

    def __init__(self, lines: Lines, kind: str) -> None:
        self.source, self.path, self.lines = lines.name, lines.path, lines
        first = (piece.lstrip() for _, piece in lines.read(longest=_PIECE) if piece.strip())
        self._is_list = kind == "json" and next(first, "").startswith("[")
        self.unit = "row" if self._is_list else "line"
        sample = self.sample()
        if len(sample) == 1 and _is_of_columns(sample[0].values):
            ending = ", lines=True" if kind == "jsonl" else ""
            raise UserError(
                f"{self.source} is one object of columns, as pandas' to_json writes by default; "
                f'write one object a row: to_json(..., orient="records"{ending})'
            )
        self.columns = tuple(dict.fromkeys(name for row in sample for name in row.values))

    def rows(self) -> Iterator[Row]:
        if self._is_list:
            yield from self._items()
            return
        for number, line in self.lines.read():
            if record := line.strip(" \t\r\n"):
                try:  # with what is before it, so that columns are the line's
                    values = _DECODER.decode(line.rstrip(" \t\r\n"))
                except _MALFORMED as error:
                    raise self._malformed(number, error) from error
                if not isinstance(values, dict):
                    raise self._malformed(number, _OBJECT)
                yield Row(number, values, (record,))

    def _items(self) -> Iterator[Row]:
        """Yield the list's items, of which one is in memory at a time."""
        pieces = (piece for _, piece in self.lines.read(longest=_PIECE))
        held, at, number, expected = "", 0, 1, "["
        while True:
            at = _BLANK.match(held, at).end()  # type: ignore[union-attr]
            if at == len(held):
                held, at = next(pieces, ""), 0
                if held:
                    continue
                if not expected:
                    return
            found = held[at : at + 1]
            if not found or found not in expected:
                raise self._malformed(number, _UNEXPECTED.get(expected, _OBJECT))
            if found != "{":
                at, expected = at + 1, _FOLLOWING[found]
                continue
            try:
                values, end = _DECODER.raw_decode(held, at)
            except _MALFORMED as error:
                held, at, size = held[at:], 0, len(held) - at
                if size > LONGEST_ROW:
                    reason = f"longer than {LONGEST_ROW:,} characters, or not JSON"
                    raise self._malformed(number, reason) from error
                while len(held) < 2 * size and (piece := next(pieces, "")):
                    held += piece  # the rest of it may come yet
                if len(held) == size or not isinstance(error, json.JSONDecodeError):
                    raise self._malformed(number, error) from error
                continue
            # line breaks stand between the parts of an object only: in strings they are escaped
            record = held[at:end].replace("\r", " ").replace("\n", " ")
            yield Row(number, values, (record,))
            at, number, expected = end, number + 1, ",]"

    def _malformed(self, number: int, error: Exception | str) -> UserError:
        if isinstance(error, json.JSONDecodeError):  # of a list, the column is that of a piece
            column = "" if self._is_list else f", column {error.colno}"
            error = f"not JSON ({error.msg}{column})"
        elif isinstance(error, RecursionError):
            error = "its brackets are nested too deeply"
        elif isinstance(error, ValueError):
            error = "holds a number of too many digits"
        return UserError(f"{self.where(number)}: {error}")


def _is_of_columns(values: Mapping[str, Any]) -> bool:
    """Return whether an object's values are objects of the same names, as columns by row are.

    A single one with other names than pandas' numbers may be a value that is nested.
    """
    if not values or not all(isinstance(value, dict) for value in values.values()):
        return False
    names = {tuple(value) for value in values.values()}
    return len(names) == 1 and (len(values) > 1 or all(map(str.isdigit, *names)))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise UserError(f"names the field {twice!r} twice; rename one")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)
