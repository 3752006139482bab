"""Rows of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from src.errors import UserError
from src.predict.chunks import Chunk, chunks_of
from src.predict.columns import Added, Found, Wanted
from src.predict.lines import Lines, Place


class JsonRows:
    """A JSON object a line; blank lines are none."""

    def __init__(self, lines: Lines, wanted: Wanted, added: Added) -> None:
        self._lines, self._added = lines, added
        self._found: Found | None = None
        self._first: tuple[str, dict[str, Any]] | None = next(self._records(), None)
        if self._first is not None:
            record = self._first[1]
            texts = [name for name, value in record.items() if isinstance(value, str)]
            self._found = wanted.found_in(list(record), texts, lines.where)

    def chunks(self, after: dict[str, Any] | None) -> Iterator[Chunk[list[str]]]:
        if after is not None:
            self._lines.skip_to(Place(**after))
            self._first = None
        return chunks_of(self._lines, self._rows())

    def progress(self) -> tuple[int, int | None]:
        return self._lines.progress()

    def close(self) -> None:
        self._lines.close()

    def _rows(self) -> Iterator[tuple[str, int, str, str | None]]:
        for line, record in self._all():
            assert self._found is not None
            self._added.check_free(list(record), self._lines.where)
            text = self._text_of(record, self._found.text)
            pair = None if self._found.pair is None else self._text_of(record, self._found.pair)
            yield line, len(line), text, pair

    def _all(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._first is not None:
            yield self._first
            self._first = None
        yield from self._records()

    def _records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines:
            line = line.strip(" \t\r\n")
            if line:
                yield line, self._record(line)

    def _record(self, line: str) -> dict[str, Any]:
        where = self._lines.where
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{where}: not JSON ({error.msg}, column {error.colno})") from error
        except ValueError as error:
            raise UserError(f"{where}: holds a number of too many digits") from error
        except RecursionError as error:
            raise UserError(f"{where}: its brackets are nested too deeply") from error
        if not isinstance(record, dict):
            raise UserError(f'{where}: expected an object, such as {{"text": "..."}}')
        return record

    def _text_of(self, record: dict[str, Any], field: str) -> str:
        where = self._lines.where
        if field not in record:
            raise UserError(f"{where}: the field {field!r} is missing")
        text = record[field]
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            raise UserError(f"{where}: the field {field!r} must be a string, not {kind}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{where}: the field {field!r} holds half of a surrogate pair (\\ud800 to "
                "\\udfff), which is no text; write the whole character"
            ) from error
        return text
