"""Finds the columns of texts and labels in a table, and reads the labelled examples."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from tartan.data.table import Row, Table
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
_FILE = "columns.json"  # file in a classifier's folder that records the columns it was trained on
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclass(frozen=True)
class Columns:
    """Names of the columns of texts (or first texts), of labels, and of second texts of pairs.

    There are several columns of labels where each says of one label whether a text has it.
    `separator` stands between the labels where a text has several in one column.
    """

    text: str = "text"
    label: str | tuple[str, ...] = "label"
    pair: str | None = None
    separator: str | None = field(default=None, repr=False)


class _Trained(Plain):
    text: str
    text_pair: str | None
    label: str | list[str] = ""
    separator: str | None = None


class Example(NamedTuple):
    """A text with its label (see `TaskKind`), None for none; of a pair the second text; its row."""

    text: str
    label: Any
    pair: str | None = None
    number: int = 0

    @property
    def content(self) -> tuple[str, str | None]:
        """What two examples can share whatever their labels."""
        return self.text, self.pair


def choose_columns(
    table: Table, text: str | None, label: str | Sequence[str] | None, pair: str | None
) -> Columns:
    """Return the columns that are named, and for each None the one that has a common name."""
    labels = [label] if label is None or isinstance(label, str) else label
    options = {f"task.label{number or ''}": name for number, name in enumerate(labels)}
    taken = _named(table, {"task.text": text, "task.text_pair": pair, **options})
    free = [column for column in table.columns if column not in taken]
    text = text or _found(table, free, TEXT_NAMES, "task.text")
    named = label if label is None or isinstance(label, str) else tuple(label)
    return Columns(text, named or _found(table, free, LABEL_NAMES, "task.label"), pair)


def columns_to_predict(
    table: Table, text: str | None, pair: str | None, trained: Columns | None
) -> Columns:
    """Return the columns that are named, else those of the training data, else `text`.

    That of labels is empty where the table has none.
    """
    if not table.columns:  # no rows either
        return Columns(label="")
    trained = trained or Columns(label="", pair=pair)
    if table.columns == ("text",):  # as of lines of text
        trained = replace(trained, text="text")
    if trained.pair is None and pair is not None:
        raise UserError(f"text_pair={pair}: the classifier was trained on single texts")
    label = trained.label if trained.label in table.columns else ""
    columns = Columns(text or trained.text, label, pair or trained.pair)
    _named(table, {"text": columns.text, "text_pair": columns.pair})
    return columns


def write_trained_columns(columns: Mapping[str, Any], classifier: Path) -> None:
    """Record in a classifier's folder its training columns (`text`, `text_pair`, `label`)."""
    (classifier / _FILE).write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")


def read_trained_columns(folder: Path) -> Columns | None:
    """Return the columns that the classifier in a folder, or a run's, was trained on, if known."""
    for file in (folder / _FILE, folder / "classifier" / _FILE):
        if file.is_file():
            trained = read_json(file, _Trained)
            label = trained.label if isinstance(trained.label, str) else ""
            return Columns(trained.text, label, trained.text_pair, trained.separator)
    return None


def read_labelled(
    table: Table, columns: Columns, label_of: Callable[..., Any], *, empty_labels: bool = False
) -> list[Example]:
    """Return the text and label of every row; `empty_labels` allows rows without a label.

    `label_of(row, columns, blank_is_none=empty_labels)` reads a label.
    """
    examples = []
    for row in table.rows():
        if row.values and not any(str(value).strip() for value in row.values.values()):
            continue  # separators alone, as spreadsheets leave them at the end
        text = text_of(row, columns.text)
        pair = None if columns.pair is None else text_of(row, columns.pair)
        label = label_of(row, columns, blank_is_none=empty_labels)
        if label is None and not empty_labels:
            raise UserError(f"{place_of(row, columns.label)} is empty or missing (see empty_label)")
        examples.append(Example(text, label, pair, row.number))
    if not examples:
        raise UserError(f"{table.source} holds no examples")
    return examples


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
        raise UserError(f"{place_of(row, column)} is {what}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(f"{place_of(row, column)} holds half of a surrogate pair") from error
    return text


def one_label(row: Row, column: str) -> str | None:
    """Return the name in a row's column of labels; None for null, NaN and blanks."""
    label = row.values.get(column)
    if isinstance(label, float):  # as pandas stores whole numbers where some are missing
        label = None if math.isnan(label) else int(label) if label.is_integer() else label
    if label is None or (isinstance(label, str) and not label.strip()):
        return None
    if not isinstance(label, str | int):
        raise UserError(f"{place_of(row, column)} must be text, a whole number, true or false")
    return text_of(row, column).strip() if isinstance(label, str) else str(label).lower()


def place_of(row: Row, column: str | tuple[str, ...]) -> str:
    """Return the words for a row's column in messages."""
    return f"{row.place}: the column {column!r}"


def _named(table: Table, options: Mapping[str, str | None]) -> set[str]:
    """Return the columns that options name, after checking that each exists and is named once."""
    chosen = {option: name for option, name in options.items() if name is not None}
    for option, name in chosen.items():
        if name not in table.columns:
            raise UserError(f"{option}={name}: {_listing(table)}")
    if len(set(chosen.values())) < len(chosen):
        listed = ", ".join(f"{option}={name}" for option, name in chosen.items())
        raise UserError(f"{listed}: texts and labels must be columns of their own")
    return set(chosen.values())


def _found(table: Table, free: Sequence[str], names: Sequence[str], option: str) -> str:
    """Return the column called `names[0]`; else the only one with any of `names`, in any case."""
    usual = [column for column in free if column.lower() in names]
    first = [column for column in usual if column.lower() == names[0]]
    for found in (set(names[:1]).intersection(first), first, usual):
        if len(found) == 1:
            return next(iter(found))
    raise UserError(f"{_listing(table)}; name that of the {names[0]}s: {option}=COLUMN")


def _listing(table: Table) -> str:
    return f"{table.source} has the columns {', '.join(map(repr, table.columns))}"
