"""Finds the columns of a table that hold texts and labels, where they are not named."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tartan.data.table.base import Table
from tartan.data.table.delimited import DelimitedTable
from tartan.data.table.text_lines import TextLines
from tartan.errors import UserError

TEXT_NAMES = (
    "text", "texts", "sentence", "content", "body", "document", "abstract", "review", "comment",
    "message", "tweet", "post", "paragraph", "description", "utterance", "question",
)  # fmt: skip
"""Common names of a column of texts, in lower case."""
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "rating",
    "stars", "tag", "y",
)  # fmt: skip
"""Common names of a column of labels, in lower case."""
_FILE = "columns.json"
"""File in a classifier's folder that records the columns it was trained on."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are read.

    Attributes:
        text: the column of texts, or of the first texts of pairs.
        label: the column of labels.
        pair: the column of the second texts of pairs; None for single texts.
    """

    text: str = "text"
    label: str = "label"
    pair: str | None = None


def choose_columns(
    table: Table,
    text: str | None,
    label: str | None,
    pair: str | None = None,
    prefix: str = "task.",
) -> Columns:
    """Return the columns to read: those that are named, and for each None the one that is found.

    A column is found by a common name if one column has such a name. Otherwise the texts are in the
    only column that holds words, and the labels in the only remaining column.

    Args:
        table: the table.
        text: the column of texts.
        label: the column of labels.
        pair: the column of second texts; None for single texts.
        prefix: beginning of the options' names, for messages.

    Raises:
        UserError: a named column does not exist, two options name the same one, or none can be
            found.
    """
    taken = _checked(
        table, {f"{prefix}text": text, f"{prefix}text_pair": pair, f"{prefix}label": label}
    )
    if label is None and (label := _common(table, LABEL_NAMES, taken)) is not None:
        taken.add(label)
    if text is None:
        text = find_text(table, taken, f"{prefix}text")
        taken.add(text)
    if label is None:
        label = _only([name for name in table.columns if name not in taken])
        if label is None:
            raise _not_found(table, "labels", f"{prefix}label")
    return Columns(text, label, pair)


def columns_to_predict(
    table: Table, text: str | None, pair: str | None, trained: Columns | None
) -> Columns:
    """Return the columns to predict from: those that are named, else those of the training data.

    Where the training columns are unknown, the texts are in `text`, or in the only column of words.
    Lines of text have no other name than `text`.

    Raises:
        UserError: a column does not exist, or the table has single texts where the classifier was
            trained on pairs, or the reverse.
    """
    if not table.columns and table.entry == "column":
        raise UserError(f"{table.source} is empty; its first line has to name the columns")
    if not table.columns:  # no rows either
        return Columns()
    taken = _checked(table, {"text": text, "text_pair": pair})
    if isinstance(table, TextLines) and trained is not None:
        trained = replace(trained, text="text")
    if trained is None:
        return Columns(text or find_text(table, taken, "text", ("text",)), "", pair)
    if trained.pair is None and pair is not None:
        raise UserError(f"text_pair={pair}: the classifier was trained on single texts")
    expected = [own for own in (trained.text, trained.pair) if own is not None]
    for option, name, own in (("text", text, trained.text), ("text_pair", pair, trained.pair)):
        if name is None and own is not None and own not in table.columns:
            raise UserError(
                f"{table.source} has no {table.entry} {own!r}, which the classifier was trained "
                f"on; name yours: {option}={table.entry.upper()} ({_listing(table, *expected)})"
            )
    found = Columns(text or trained.text, "", pair or trained.pair)
    if found.text == found.pair:
        raise UserError(f"{table.source}: {found.text!r} cannot be both texts of a pair")
    return found


def write_trained_columns(columns: Mapping[str, str | None], classifier: Path) -> None:
    """Record in a classifier's folder its training columns (`text`, `text_pair`, `label`)."""
    (classifier / _FILE).write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")


def read_trained_columns(given: Path) -> Columns | None:
    """Return the columns of texts that a classifier was trained on; None if they are not recorded.

    Args:
        given: a run folder, the classifier's folder in it, or a copy of that elsewhere.

    Raises:
        UserError: the classifier's record of its columns is damaged.
    """
    for file in (given / _FILE, given / "classifier" / _FILE):
        if file.is_file():
            try:
                return _trained_columns(json.loads(file.read_text(encoding="utf-8")))
            except _UNREADABLE as error:
                raise UserError(
                    f"{file} is damaged ({type(error).__name__}); remove it, and name the columns "
                    "that the classifier was trained on: text=COLUMN"
                ) from error
    for file in (given / "result.json", given.parent / "result.json"):
        try:
            return _trained_columns(json.loads(file.read_text(encoding="utf-8"))["data"]["columns"])
        except _UNREADABLE:
            continue  # of another program, or of an earlier version
    return None


def _trained_columns(columns: Any) -> Columns:
    text, pair = columns["text"], columns["text_pair"]
    if not isinstance(text, str) or not isinstance(pair, str | None):
        raise TypeError("no names of columns")
    return Columns(text, "", pair)


def find_text(
    table: Table,
    taken: Collection[str],
    option: str,
    names: Collection[str] = TEXT_NAMES,
) -> str:
    """Return the column that holds the texts, where no option names it.

    Args:
        taken: columns that are already known to hold something else.
        option: the option that names the column, for the message.
        names: names by which one of several columns of words is chosen.

    Raises:
        UserError: no column holds words, or several do and the names do not decide.
    """
    found = _common(table, names, taken) or _only(_columns_of_words(table, taken))
    if found is None:
        raise _not_found(table, "texts", option)
    return found


def _checked(table: Table, named: Mapping[str, str | None]) -> set[str]:
    """Return the columns that options name, after checking that each exists and is named once."""
    told = {option: name for option, name in named.items() if name is not None}
    for option, name in told.items():
        if name not in table.columns:
            raise UserError(f"{option}={name}: {_listing(table)}")
    if len(set(told.values())) < len(told):
        listed = ", ".join(f"{option}={name}" for option, name in told.items())
        raise UserError(f"{listed}: texts and labels must be columns of their own")
    return set(told.values())


def _common(table: Table, names: Collection[str], taken: Collection[str]) -> str | None:
    """Return the column called `names[0]`; else the column with any other of `names`, if exactly
    one column has such a name.
    """
    by_name = {column.lower(): column for column in reversed(table.columns) if column not in taken}
    found = [by_name[name] for name in names if name in by_name]
    first = next(iter(names))
    return by_name[first] if first in by_name else _only(found)


def _only(names: list[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def _columns_of_words(table: Table, taken: Collection[str]) -> list[str]:
    rows = [row.values for row in table.sample()]
    free = [name for name in table.columns if name not in taken]
    return [name for name in free if any(_is_words(row.get(name)) for row in rows)]


def _is_words(value: object) -> bool:
    """Return whether the value is a string that is not a number."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        float(value.replace(",", "."))
    except ValueError:
        return True
    return False


def _not_found(table: Table, what: str, option: str) -> UserError:
    entry = table.entry.upper()
    pairs = f", and the second texts of pairs: {option}_pair={entry}" if what == "texts" else ""
    return UserError(
        f"{table.source}: cannot tell which {table.entry} holds the {what}; name it: "
        f"{option}={entry}{pairs} ({_listing(table, 'text', 'label')})"
    )


def _listing(table: Table, *header: str) -> str:
    """Return the table's columns for a message, e.g. `labels.csv has the columns 'id', 'words'`.

    Args:
        table: the table.
        header: names that a header could have, to say so where the file may lack one.
    """
    names = ", ".join(map(repr, table.columns))
    several = "s" if len(table.columns) != 1 else ""
    remark, advice = "", ""
    if header and isinstance(table, DelimitedTable):
        example = table.separator.join(header).replace("\t", "<tab>")
        remark = ", whose first row is read as names,"
        advice = f"; if it is not a header, put a line of names such as {example} first"
    return f"{table.source}{remark} has the {table.entry}{several} {names}{advice}"
