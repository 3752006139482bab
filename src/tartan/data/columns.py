"""Finds the columns of a table that hold texts and labels, where they are not named."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tartan.data.table.base import Table
from tartan.data.table.text import TextLines
from tartan.errors import UserError
from tartan.files import Plain, read_json

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


class _Trained(Plain):
    text: str
    text_pair: str | None


def choose_columns(
    table: Table,
    text: str | None,
    label: str | None,
    pair: str | None = None,
    prefix: str = "task.",
) -> Columns:
    """Return the columns to read: those that are named, and for each None the one that is found.

    A column is found by a common name if one column has such a name. Otherwise the texts are in the
    only column that holds words, and the labels in the only remaining column. `prefix` begins the
    options' names in messages.
    """
    options = {f"{prefix}text": text, f"{prefix}text_pair": pair, f"{prefix}label": label}
    taken = _checked(table, options)
    if label is None and (label := _by_name(table, LABEL_NAMES, taken)) is not None:
        taken.add(label)
    if text is None:
        text = _text_column(table, taken, f"{prefix}text", TEXT_NAMES)
        taken.add(text)
    if label is None:
        free = [name for name in table.columns if name not in taken]
        label = _only(table, free, "labels", f"{prefix}label")
    return Columns(text, label, pair)


def columns_to_predict(
    table: Table, text: str | None, pair: str | None, trained: Columns | None
) -> Columns:
    """Return the columns to predict from: those that are named, else those of the training data.

    Where the training columns are unknown, the texts are in `text`, or in the only column of words.
    Lines of text have no other name than `text`.
    """
    if not table.columns:  # no rows either
        return Columns()
    taken = _checked(table, {"text": text, "text_pair": pair})
    if trained is None:
        return Columns(text or _text_column(table, taken, "text", ("text",)), "", pair)
    if isinstance(table, TextLines):
        trained = replace(trained, text="text")
    if trained.pair is None and pair is not None:
        raise UserError(f"text_pair={pair}: the classifier was trained on single texts")
    columns = Columns(text or trained.text, "", pair or trained.pair)
    _checked(table, {"text": columns.text, "text_pair": columns.pair})
    return columns


def write_trained_columns(columns: Mapping[str, str | None], classifier: Path) -> None:
    """Record in a classifier's folder its training columns (`text`, `text_pair`, `label`)."""
    (classifier / _FILE).write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")


def read_trained_columns(folder: Path) -> Columns | None:
    """Return the columns that the classifier in a folder, or a run's, was trained on, if known."""
    for file in (folder / _FILE, folder / "classifier" / _FILE):
        if file.is_file():
            try:
                trained = read_json(file, _Trained)
            except UserError as error:
                raise UserError(
                    f"{file} is damaged; remove it, and name the column: text=COLUMN"
                ) from error
            return Columns(trained.text, "", trained.text_pair)
    return None


def _text_column(table: Table, taken: Collection[str], option: str, names: Sequence[str]) -> str:
    """Return the column of texts: one of `names`, or the only column of words that is not taken."""
    column = _by_name(table, names, taken)
    if column is None:
        rows = [row.values for row in table.sample()]
        free = [name for name in table.columns if name not in taken]
        words = [name for name in free if any(_is_words(row.get(name)) for row in rows)]
        column = _only(table, words, "texts", option)
    return column


def _checked(table: Table, named: Mapping[str, str | None]) -> set[str]:
    """Return the columns that options name, after checking that each exists and is named once."""
    chosen = {option: name for option, name in named.items() if name is not None}
    for option, name in chosen.items():
        if name not in table.columns:
            raise UserError(f"{option}={name}: {_listing(table)}; name yours: {option}=COLUMN")
    if len(set(chosen.values())) < len(chosen):
        listed = ", ".join(f"{option}={name}" for option, name in chosen.items())
        raise UserError(f"{listed}: texts and labels must be columns of their own")
    return set(chosen.values())


def _by_name(table: Table, names: Sequence[str], taken: Collection[str]) -> str | None:
    """Return the column called `names[0]`; else the only one with any of `names`; case is last."""
    free = [column for column in table.columns if column not in taken]
    if names[0] in free:
        return names[0]
    first = [column for column in free if column.lower() == names[0]]
    usual = first[:1] or [column for column in free if column.lower() in names]
    return usual[0] if len(usual) == 1 else None


def _only(table: Table, names: Sequence[str], what: str, option: str) -> str:
    if len(names) != 1:
        raise UserError(
            f"{table.source}: cannot tell which column holds the {what}; name it: {option}=COLUMN "
            f"({_listing(table)})"
        )
    return names[0]


def _is_words(value: object) -> bool:
    """Return whether the value is a string that is not a number."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        float(value.replace(",", "."))
    except ValueError:
        return True
    return False


def _listing(table: Table) -> str:
    return f"{table.source} has the columns {', '.join(map(repr, table.columns))}"
