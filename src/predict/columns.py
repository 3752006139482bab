"""Which columns are read, and which are added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from src.errors import UserError

_SHOWN = 12
"""Column names in a message."""


@dataclass(frozen=True)
class Wanted:
    """What the user says of columns; None: to be found, or not there.

    Attributes:
        text: the column that is classified.
        pair: a second text that goes with it.
        trained: the columns that the classifier was trained on, if that is known: taken where
            neither is said and the file has them.
    """

    text: str | None = None
    pair: str | None = None
    trained: tuple[str, str | None] | None = None

    def found_in(self, columns: Sequence[str], texts: Sequence[str], where: str) -> Found:
        """The columns to read.

        Args:
            columns: all there are.
            texts: those that hold text.
            where: the file, for messages.

        Raises:
            UserError: there is no such column, or several that it could be.
        """
        for option, name in (("text", self.text), ("text_pair", self.pair)):
            if name is not None and name not in columns:
                raise UserError(f"{where}: there is no column {option}={name}; {_listed(columns)}")
            if name is not None and name not in texts:
                raise UserError(f"{where}: column {option}={name} holds no text")
        if self.text is not None:
            return Found(self.text, self.pair)
        if self.trained is not None and self.pair is None:
            text, pair = self.trained
            if text in texts and (pair is None or pair in texts):
                return Found(text, pair)
        if "text" in texts:
            return Found("text", self.pair)
        others = [name for name in texts if name != self.pair]
        if len(others) != 1:
            raise UserError(
                f"{where}: which column is the text? say so with text=COLUMN; {_listed(columns)}"
            )
        return Found(others[0], self.pair)


@dataclass(frozen=True)
class Found:
    """The columns that are read (see `Wanted`)."""

    text: str
    pair: str | None


@dataclass(frozen=True)
class Added:
    """The columns that are added.

    Attributes:
        label: its name's column.
        probabilities: a column a class, in the labels' order.
    """

    label: str
    probabilities: tuple[str, ...]

    @staticmethod
    def named(labels: Sequence[str], prefix: str) -> Added:
        """`predicted_label` and `probability_LABEL`, after `prefix`."""
        return Added(
            f"{prefix}predicted_label", tuple(f"{prefix}probability_{label}" for label in labels)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (self.label, *self.probabilities)

    def check_free(self, columns: Sequence[str], where: str) -> None:
        """Whether no column has one of these names.

        Raises:
            UserError: one has.
        """
        taken = [name for name in self.names if name in columns]
        if taken:
            raise UserError(
                f"{where}: there is a column {taken[0]} already; name the new ones otherwise with "
                "prefix=PREFIX, e.g. prefix=new_"
            )


def trained_columns(given: Path) -> tuple[str, str | None] | None:
    """Columns of the text, and of a second one, that the run read; None if nothing tells.

    Args:
        given: a run folder, or the classifier's folder in it.
    """
    for folder in (given, given.parent):
        try:
            result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            columns = result["data"]["columns"]
            text, pair = columns["text"], columns["text_pair"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(text, str) and isinstance(pair, str | None):
            return text, pair
    return None


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return f"there are {', '.join(columns[:_SHOWN])}{more}" if columns else "there are none"
