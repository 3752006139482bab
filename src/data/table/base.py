"""A table: named columns, and rows that know where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

SAMPLE = 100
"""Rows that are looked at to tell what a column holds."""


@dataclass(frozen=True)
class Row:
    """A row's values by column.

    Attributes:
        number: the line it begins at, or its place among the rows; either counted from 1.
        values: as the format has them: text in CSV; text, numbers, ... in JSON and Parquet.
    """

    number: int
    values: Mapping[str, Any]


class Table(ABC):
    """Rows of named columns; they are read anew by each call of `rows`, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        columns: names in the table's order; empty where there is not even a header.
        unit: what a row's number counts, `line` or `row`.
        entry: what a value is called in a message, `column` or `field`.
        remark: what was detected and not said by the file's name; None if nothing.
    """

    source: str
    columns: tuple[str, ...]
    unit: ClassVar[str] = "line"
    entry: ClassVar[str] = "column"
    remark: str | None = None

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """All rows, in order.

        Raises:
            UserError: a row is malformed; names file and line.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the content changes."""

    def where(self, number: int) -> str:
        """How a message names the row with this number, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """The first rows."""
        return list(islice(self.rows(), SAMPLE))
