"""A table whose rows are Python objects: dictionaries, or tuples of text and label."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from tartan.data.table.base import Row, Table
from tartan.errors import UserError


class MemoryTable(Table):
    """A table whose rows a program passes as Python objects.

    Args:
        rows: mappings of columns to values; or tuples of a text, perhaps a second one, and a label.
        source: name of the rows in messages, e.g. `train`.

    Raises:
        UserError: a row is neither a mapping nor such a tuple.
    """

    unit = "row"

    def __init__(self, rows: Iterable[Any], source: str) -> None:
        self.source = source
        self._rows = [self._row(number, given) for number, given in enumerate(rows, start=1)]
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def rows(self) -> Iterator[Row]:
        return iter(self._rows)

    @cached_property
    def fingerprint(self) -> str:
        # the columns sorted, but no keys in their values, which may be of several types
        rows = (
            json.dumps(dict(sorted(row.values.items())), default=repr, skipkeys=True)
            for row in self._rows
        )
        return hashlib.sha256("".join(rows).encode()).hexdigest()

    def _row(self, number: int, given: Any) -> Row:
        if hasattr(given, "_asdict"):  # a named tuple
            given = given._asdict()
        if isinstance(given, tuple | list) and len(given) in (2, 3):
            names = ("text", "label") if len(given) == 2 else ("text", "text_pair", "label")
            given = dict(zip(names, given, strict=True))
        if not isinstance(given, Mapping):
            found = type(given).__name__
            if isinstance(given, str | os.PathLike):
                advice = "a file is given by itself, without a list; join several into one first"
                found = f"{given!r:.80}; {advice}"
            raise UserError(
                f"{self.where(number)}: expected a mapping with a text and a label, or a tuple of "
                f"them, got {found}"
            )
        return Row(number, {str(name): _plain(value) for name, value in given.items()})


def _plain(value: Any) -> Any:
    """Return a NumPy or torch number as a Python number, pandas' missing value as None.

    Any other value stays as it is.
    """
    if value is pd.NA or value is pd.NaT:
        return None
    is_one = callable(getattr(value, "item", None)) and math.prod(getattr(value, "shape", ())) == 1
    return value.item() if is_one else value
