"""The columns of a table's texts and labels: named by the user, or found."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from src.configuration.nearest import nearest
from src.data.table.base import Table
from src.errors import UserError

TEXT_NAMES = (
    "text", "texts", "sentence", "content", "body", "document", "abstract", "review", "comment",
    "message", "tweet", "post", "paragraph", "description", "utterance", "question",
)  # fmt: skip
"""Common names of columns of texts; case does not matter."""
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "rating",
    "stars", "tag", "y",
)  # fmt: skip
"""The same for labels."""
_FILE = "columns.json"
"""In a classifier's folder."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    Attributes:
        text: of the texts, or the first texts of pairs.
        label: of the labels.
        pair: of the second texts; None where there are no pairs.
    """

    text: str = "text"
    label: str = "label"
    pair: str | None = None


def choose_columns(
    table: Table, text: str | None, label: str | None, pair: str | None = None
) -> Columns:
    """The columns as named, and for those that are not (None): as found.

    Found is a column by a common name, if there is one such name; else, as text, the only column
    that holds words, and as label, the only other one.

    Raises:
        UserError: a named column is not there, two options name the same, or none can be found.
    """
    taken = _checked(table, {"task.text": text, "task.text_pair": pair, "task.label": label})
    if label is None and (label := _common(table, LABEL_NAMES, taken)) is not None:
        taken.add(label)
    if text is None:
        text = find_text(table, taken)
        taken.add(text)
    if label is None:
        label = _only([name for name in table.columns if name not in taken])
        if label is None:
            raise _not_found(table, "labels", "task.label")
    return Columns(text, label, pair)


def columns_to_predict(
    table: Table, text: str | None, pair: str | None, trained: Trained | None
) -> Columns:
    """The columns that a classifier reads: as named, else those that it was trained on.

    Where nothing tells what it was trained on, it is `text`, or the only column that holds words.

    Raises:
        UserError: a column is not there, or one text is given where the classifier was trained on
            two, or two where it was trained on one.
    """
    if not table.columns and table.entry == "column":
        raise UserError(f"{table.source} is empty; its first line has to name the columns")
    if not table.columns:  # no rows either
        return Columns()
    taken = _checked(table, {"text": text, "text_pair": pair})
    if trained is None:
        return Columns(text or find_text(table, taken, "text", ("text",)), "", pair)
    if trained.pair is None and pair is not None:
        raise UserError(f"text_pair={pair}: the classifier was trained on single texts")
    for option, name, own in (("text", text, trained.text), ("text_pair", pair, trained.pair)):
        if name is None and own is not None and own not in table.columns:
            raise UserError(
                f"{table.source} has no {table.entry} {own!r}, which the classifier was trained "
                f"on; name yours: {option}={table.entry.upper()} ({_listing(table)})"
            )
    found = Columns(text or trained.text, "", pair or trained.pair)
    if found.text == found.pair:
        raise UserError(f"{table.source}: {found.text!r} cannot be both texts of a pair")
    return found


@dataclass(frozen=True)
class Trained:
    """The columns of the text, and of a second one, that a classifier was trained on."""

    text: str
    pair: str | None = None


def write_trained(columns: Mapping[str, str | None], classifier: Path) -> None:
    """Say in a classifier's folder which columns (`text`, `text_pair`, `label`) were read."""
    (classifier / _FILE).write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")


def read_trained(given: Path) -> Trained | None:
    """The columns that a classifier was trained on; None if nothing tells.

    Args:
        given: a run folder, or the classifier's folder in it, or one that was moved elsewhere.

    Raises:
        UserError: the classifier's own note is damaged.
    """
    for file in (given / _FILE, given / "classifier" / _FILE):
        if file.is_file():
            try:
                return _trained(json.loads(file.read_text(encoding="utf-8")))
            except _UNREADABLE as error:
                raise UserError(
                    f"{file} is damaged ({type(error).__name__}); remove it, and name the columns "
                    "that the classifier was trained on: text=COLUMN"
                ) from error
    for file in (given / "result.json", given.parent / "result.json"):
        try:
            return _trained(json.loads(file.read_text(encoding="utf-8"))["data"]["columns"])
        except _UNREADABLE:
            continue  # of another program, or of an earlier version
    return None


def _trained(columns: Any) -> Trained:
    text, pair = columns["text"], columns["text_pair"]
    if not isinstance(text, str) or not isinstance(pair, str | None):
        raise TypeError("no names of columns")
    return Trained(text, pair)


def find_text(
    table: Table,
    taken: Collection[str] = (),
    option: str = "task.text",
    names: Collection[str] = TEXT_NAMES,
) -> str:
    """The column of texts that nobody named.

    Args:
        taken: columns that are something else.
        option: by which a column is named, for the message.
        names: what it may be called where there are several.

    Raises:
        UserError: there is none, or several could be it.
    """
    found = _common(table, names, taken) or _only(_columns_of_words(table, taken))
    if found is None:
        raise _not_found(table, "texts", option)
    return found


def check_column(table: Table, option: str, name: str) -> None:
    """Check that `table` has the column that `option` names.

    Raises:
        UserError: it has not; tells those that it has.
    """
    if name not in table.columns:
        near = nearest(name, table.columns, f"{option}=", listed=False)
        raise UserError(f"{option}={name}: {_listing(table)}{near}")


def _checked(table: Table, named: Mapping[str, str | None]) -> set[str]:
    """The columns that are named, by option."""
    told = {option: name for option, name in named.items() if name is not None}
    for option, name in told.items():
        check_column(table, option, name)
    if len(set(told.values())) < len(told):
        listed = ", ".join(f"{option}={name}" for option, name in told.items())
        raise UserError(f"{listed}: texts and labels must be columns of their own")
    return set(told.values())


def _common(table: Table, names: Collection[str], taken: Collection[str]) -> str | None:
    """The column with the first of the common names, or the only one with another of them."""
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
    """Return whether it is text that is no number."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        float(value.replace(",", "."))
    except ValueError:
        return True
    return False


def _not_found(table: Table, what: str, option: str) -> UserError:
    return UserError(
        f"{table.source}: cannot tell which {table.entry} holds the {what}; name it: "
        f"{option}={table.entry.upper()} ({_listing(table)})"
    )


def _listing(table: Table) -> str:
    """E.g. `labels.csv has the columns 'id', 'words'`."""
    names = ", ".join(map(repr, table.columns))
    several = "s" if len(table.columns) != 1 else ""
    return f"{table.source} has the {table.entry}{several} {names}"
