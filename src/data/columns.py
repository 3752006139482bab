"""Which columns of a table are its texts and labels: named by the user, or found."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from src.data.table.base import Table
from src.errors import UserError

TEXT_NAMES = (
    "text", "texts", "sentence", "content", "body", "document", "abstract", "review", "comment",
    "message", "tweet", "post", "paragraph", "description", "utterance", "question",
)  # fmt: skip
"""What a column of texts is commonly called; case does not matter."""
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "rating",
    "stars", "tag", "y",
)  # fmt: skip
"""The same for labels."""


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
    named = {"task.text": text, "task.text_pair": pair, "task.label": label}
    for option, name in named.items():
        if name is not None:
            check_column(table, option, name)
    given = [name for name in named.values() if name is not None]
    if len(set(given)) < len(given):
        told = ", ".join(f"{option}={name}" for option, name in named.items() if name is not None)
        raise UserError(f"{told}: texts and labels must be columns of their own")
    taken = set(given)
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


def find_text(table: Table, taken: Collection[str] = ()) -> str:
    """The column of texts that nobody named.

    Args:
        taken: columns that are something else.

    Raises:
        UserError: there is none, or several could be it.
    """
    found = _common(table, TEXT_NAMES, taken) or _only(_columns_of_words(table, taken))
    if found is None:
        raise _not_found(table, "texts", "task.text")
    return found


def check_column(table: Table, option: str, name: str) -> None:
    """Whether `table` has the column that `option` names.

    Raises:
        UserError: it has not; tells those that it has.
    """
    if name not in table.columns:
        near = difflib.get_close_matches(name, table.columns, n=1)
        hint = f"; did you mean {option}={near[0]}?" if near else ""
        raise UserError(f"{option}={name}: {_listing(table)}{hint}")


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
    """Whether it is text that is no number."""
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
