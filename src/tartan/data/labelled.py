"""Reads the labelled examples of a table and checks every value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from tartan.data.columns import Columns
from tartan.data.table.base import Row, Table
from tartan.errors import UserError

_KINDS = {str: "a string", int: "a whole number", bool: "true or false"}
"""Types that labels may have, with their names in messages; a file's labels are all of one."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


class Example(NamedTuple):
    """A labelled text.

    Attributes:
        text: the text, or the first of a pair.
        label: the label's name, as it is written in the file; empty for none.
        pair: the second text of a pair; None where there are no pairs.
        number: number of its row (see `Row`).
    """

    text: str
    label: str
    pair: str | None = None
    number: int = 0

    @property
    def content(self) -> str | tuple[str, str]:
        """Return the text or pair of texts, which two examples can share whatever their labels."""
        return self.text if self.pair is None else (self.text, self.pair)


def read_labelled(table: Table, columns: Columns, *, empty_labels: bool = False) -> list[Example]:
    """Return the text and label of every row; `empty_labels` allows rows without a label."""
    examples = []
    kind: type | None = None
    for row in table.rows():
        if row.record and not any(map(str.strip, row.record)):
            continue  # separators alone, as spreadsheets leave them at the end
        text = text_of(row, columns.text)
        pair = None if columns.pair is None else text_of(row, columns.pair)
        label, name = _label_of(row, columns.label, kind), ""
        if label is not None:
            kind = type(label)
            name = text_of(row, columns.label) if kind is str else str(label).lower()
        elif not empty_labels:
            raise UserError(
                f"{_place(row, columns.label)} is empty or missing (empty_label=unlabelled takes "
                "such texts of train as unlabelled)"
            )
        examples.append(Example(text, name, pair, row.number))
    if not examples:
        raise UserError(f"{table.source} holds no examples")
    return examples


def _label_of(row: Row, column: str, kind: type | None) -> Any:
    """Return a row's label, of the type of those before; None for an empty one, null, or NaN."""
    label = row.values.get(column)
    if isinstance(label, float):  # as pandas stores whole numbers where some are missing
        label = None if math.isnan(label) else int(label) if label.is_integer() else label
    if label is None or (isinstance(label, str) and not label.strip()):
        return None
    if type(label) not in (_KINDS if kind is None else (kind,)):
        allowed = "a string, a whole number, true or false" if kind is None else _KINDS[kind]
        raise UserError(f"{_place(row, column)} must be {allowed}, not {label!r:.40}")
    return label


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the different label names, sorted: by value where all of them are numbers."""
    names = sorted(set(labels))
    if all(map(_NUMBER.fullmatch, names)):
        names.sort(key=Decimal)
    return tuple(names)


def text_of(row: Row, column: str) -> str:
    """Return the text in a column of a row, which may be blank."""
    text = row.values.get(column)
    if not isinstance(text, str):
        missing = text is None or (isinstance(text, float) and math.isnan(text))
        what = "missing" if missing else f"no text but {type(text).__name__}"
        raise UserError(f"{_place(row, column)} is {what}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(f"{_place(row, column)} holds half of a surrogate pair") from error
    return text


def _place(row: Row, column: str) -> str:
    return f"{row.place}: the column {column!r}"
