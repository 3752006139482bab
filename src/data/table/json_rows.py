"""JSONL: an object a line; and JSON: a list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from src.data.checksum import sha256_of
from src.data.table.base import Row, Table
from src.data.table.lines import text_lines
from src.errors import UserError

_OBJECT = 'expected an object, {"NAME": VALUE, ...}'


class JsonLinesTable(Table):
    """A file with an object on each line; blank lines are left out.

    `columns` are the fields of its first rows.

    Raises:
        UserError: one of these is no object.
    """

    entry = "field"

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._path = path
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`."""
        for number, line in text_lines(self._path):
            if line.strip():
                yield Row(number, _object(line, self.where(number)))

    def fingerprint(self) -> str:
        return sha256_of(self._path)


class JsonTable(Table):
    """A file that is one list of objects, held in memory.

    Raises:
        UserError: it is something else.
    """

    entry = "field"
    unit = "row"

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._path = path
        content = _parsed("".join(line for _, line in text_lines(path)), self.source)
        if not isinstance(content, list):
            raise UserError(f"{path}: expected a list of objects; or name it .jsonl")
        self._rows = content
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def rows(self) -> Iterator[Row]:
        """See `Table.rows`."""
        for number, values in enumerate(self._rows, start=1):
            if not isinstance(values, dict):
                raise UserError(f"{self.where(number)}: {_OBJECT}")
            yield Row(number, values)

    def fingerprint(self) -> str:
        return sha256_of(self._path)


def is_list(path: Path) -> bool:
    """Whether the file's first character that is no white space opens a list."""
    first = next((line for _, line in text_lines(path) if line.strip()), "")
    return first.lstrip().startswith("[")


def _object(line: str, where: str) -> dict[str, Any]:
    content = _parsed(line, where)
    if not isinstance(content, dict):
        raise UserError(f"{where}: {_OBJECT}")
    return content


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}"
        raise UserError(f"{where}: not JSON ({error.msg}, {place})") from error
    except ValueError as error:
        raise UserError(f"{where}: holds a number of too many digits") from error
    except RecursionError as error:
        raise UserError(f"{where}: its brackets are nested too deeply") from error
