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
        label: the label's name, as it is written in the file.
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


def read_labelled(
    table: Table, columns: Columns, *, empty_labels: bool = False, option: str = ""
) -> list[Example]:
    """Return the text and label of every row; other columns are ignored.

    Args:
        table: the table.
        columns: the columns to read.
        empty_labels: whether rows may be without a label: their examples have an empty one.
        option: the option that allows this, for messages; empty where there is none.

    Raises:
        UserError: there are no rows, a column does not exist, or a value is missing or of the wrong
            type; the message names file, line and column.
    """
    if table.entry == "column":
        _check_columns(table, columns)
    examples = []
    kind: type | None = None
    rows = table.rows()
    for row in rows:
        if _is_blank(row):
            continue
        text = text_of(table, row, columns.text)
        pair = None if columns.pair is None else text_of(table, row, columns.pair)
        if _is_empty(row, columns.label):
            if not empty_labels:
                raise _unlabelled(table, row, columns.label, rows, option)
            examples.append(Example(text, "", pair, row.number))
            continue
        label = _as_class(table, row, columns.label, kind)
        if type(label) not in (_KINDS if kind is None else (kind,)):
            expected = "a string, a whole number, true or false" if kind is None else _KINDS[kind]
            raise _wrong(table, row, columns.label, expected, label)
        kind = type(label)
        name = str(label).lower() if kind is bool else str(label)
        _check_characters(name, table, row, columns.label)
        examples.append(Example(text, name, pair, row.number))
    if not examples:
        raise UserError(f"{table.source} holds no examples")
    return examples


def _as_class(table: Table, row: Row, column: str, kind: type | None) -> Any:
    """Return a row's label; a whole number that is stored as 1.0 is one.

    Pandas stores whole numbers so where some are missing.

    Args:
        table: the table.
        row: the row.
        column: the column of labels.
        kind: type of the labels before it; None for the first one.

    Raises:
        UserError: it is a number that is no whole one, among numbers.
    """
    label = row.values[column]
    if not isinstance(label, float) or kind not in (None, int):
        return label
    if not label.is_integer():
        raise UserError(
            f"{_place(table, row, column)} is {label:g}: the column looks like numbers, not "
            "classes; name another: task.label=COLUMN (in a program label=COLUMN), or make classes "
            "of the numbers"
        )
    return int(label)


def _is_blank(row: Row) -> bool:
    """Return whether a line has nothing but separators, as spreadsheets leave them at the end."""
    return bool(row.record) and not any(map(str.strip, row.record))


def _is_empty(row: Row, column: str) -> bool:
    """Return whether a row has no label: none at all, an empty one, null, or NaN."""
    label = row.values.get(column)
    is_blank = isinstance(label, str) and not label.strip()
    return label is None or is_blank or (isinstance(label, float) and math.isnan(label))


def _check_columns(table: Table, columns: Columns) -> None:
    for name in (columns.text, columns.pair, columns.label):
        if name is not None and table.columns and name not in table.columns:
            raise UserError(
                f"{table.source} has no column {name!r}, only "
                f"{', '.join(map(repr, table.columns))}; all files of a task must name their "
                "columns alike"
            )


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the different label names, sorted: by value where all of them are numbers."""
    names = sorted(set(labels))
    numbers = {name: number for name in names if (number := number_of(name)) is not None}
    if len(numbers) == len(names):
        names.sort(key=numbers.__getitem__)
    return tuple(names)


def number_of(label: str) -> Decimal | None:
    """Return the number that a label is, None if it is none."""
    return Decimal(label) if _NUMBER.fullmatch(label) else None


def text_of(table: Table, row: Row, column: str) -> str:
    """Return the text in a column of a row, which may be blank.

    Raises:
        UserError: it is missing or not a string; the message names file, line and column.
    """
    text = row.values.get(column)
    if table.entry == "field" and column not in row.values:
        raise UserError(f"{_place(table, row, column)} is missing")
    if text is None and table.entry == "column":
        raise UserError(f"{_place(table, row, column)} is empty; fill it in, or remove the row")
    if not isinstance(text, str):
        raise _wrong(table, row, column, _KINDS[str], text)
    _check_characters(text, table, row, column)
    return text


def _unlabelled(
    table: Table, row: Row, column: str, later: Iterable[Row], option: str
) -> UserError:
    """Return the error of a row without a label, which counts those after it."""
    others = sum(_is_empty(one, column) for one in later if not _is_blank(one))
    more = f", as in {others:,} more row{'s' if others > 1 else ''}" if others else ""
    state = "empty" if column in row.values else "missing"
    advice = f" ({option}=unlabelled takes the texts of such rows as unlabelled text)"
    return UserError(
        f"{_place(table, row, column)} is {state}{more}; fill it in, or remove the row"
        f"{advice if option else ''}"
    )


def _wrong(table: Table, row: Row, column: str, expected: str, value: object) -> UserError:
    # a data frame has NaN there; arrays compare element by element
    missing = value is None or (not hasattr(value, "shape") and value != value)
    found = "null" if missing else type(value).__name__
    return UserError(f"{_place(table, row, column)} must be {expected}, not {found}")


def _place(table: Table, row: Row, column: str) -> str:
    return f"{table.where(row.number)}: the {table.entry} {column!r}"


def _check_characters(text: str, table: Table, row: Row, column: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"{_place(table, row, column)} holds half of a surrogate pair (\\ud800 to "
            "\\udfff), which is not text; write the whole character"
        ) from error
