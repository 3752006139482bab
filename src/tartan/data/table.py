"""Tables: rows of named columns, each with its place in a file, a data set or a program's list."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import datasets
import pyarrow as pa

from tartan.errors import UserError, first_line

T = TypeVar("T", bound=Sized)

UNREADABLE = (OSError, pa.ArrowException)
"""Exceptions by which the system and Arrow report files that cannot be read."""
SAMPLE = 100
"""Number of first rows that tell what columns there are."""
CHUNK_ROWS, CHUNK_CHARACTERS = 1024, 1 << 24
"""Maximum number of rows in a chunk, and of characters at which it ends early."""


class Row(NamedTuple):
    """A row: its line or number, from 1, its values by column, and where it is, for messages."""

    number: int
    values: Mapping[str, Any]
    place: str
    fields: Sequence[str] = ()  # all of CSV, also of columns without a name


class Table:
    """Rows of named columns; each call of `rows` reads them anew, one at a time.

    Attributes:
        source: the file's path, or the data set's name.
        columns: column names; of JSON lines, those of the first rows. Empty without a header.
        schema: names and types of the columns; empty where rows have other columns each.
        unit: what `Row.number` counts: `line` or `row`.
    """

    columns: tuple[str, ...] = ()
    schema: pa.Schema = pa.schema([])
    unit = "row"

    def __init__(
        self, source: str, rows: Callable[[], Iterator[Row]], digest: Callable[[], str]
    ) -> None:
        self.source, self._rows, self._digest = source, rows, digest

    def rows(self) -> Iterator[Row]:
        """Yield all rows, in order."""
        return self._rows()

    @cached_property
    def fingerprint(self) -> str:
        """A string that changes when the content changes."""
        return self._digest()

    def chunks(self) -> Iterator[list[Row]]:
        """Yield all rows, some at a time that fit into memory; which depends on them alone."""
        rows = self.rows()
        while some := list(until_full(rows, CHUNK_ROWS, CHUNK_CHARACTERS, _characters)):
            yield some

    def place(self, number: int) -> str:
        """Return where a row is, for messages, e.g. `labels.csv, line 3`."""
        return f"{self.source}, {self.unit} {number}"

    def sample(self) -> list[Row]:
        """Return the first rows."""
        return list(islice(self.rows(), SAMPLE))


class ArrowTable(Table):
    """A Parquet file or a data set of `datasets`, whose columns have types.

    `read` yields all rows in batches or tables of at most so many; `labels` has the names of
    labels, by the columns that hold their indices, of which -1 is no label.
    """

    def __init__(
        self,
        source: str,
        schema: pa.Schema,
        read: Callable[[int], Iterable[pa.RecordBatch | pa.Table]],
        digest: Callable[[], str],
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(source, self._typed_rows, digest)
        self.schema, self.columns = schema, tuple(schema.names)
        self._read, self._labels = read, labels or {}
        check_names(f"{source}: its schema", self.columns)

    @property
    def unlabelled(self) -> bool:
        """Whether no label is given, as in the test splits of some benchmarks."""
        labels = [row.values[column] for row in self.sample() for column in self._labels]
        return bool(labels) and all(label is None for label in labels)

    def _typed_rows(self) -> Iterator[Row]:
        number = 0
        try:
            for batch in self._read(CHUNK_ROWS):
                for values in batch.to_pylist():
                    number += 1
                    for column, names in self._labels.items():
                        label = values[column]
                        values[column] = None if label is None or label < 0 else names[label]
                    yield Row(number, values, self.place(number))
        except UNREADABLE as error:
            raise UserError(
                f"{self.source} cannot be read after row {number}: {first_line(error)}"
            ) from error


def table_of_dataset(name: str, rows: datasets.Dataset) -> ArrowTable:
    """Return a data set as a table; labels that it stores as indices are read as their names."""
    rows = rows.with_format("arrow")
    features = rows.features.items()
    labels = {name: f.names for name, f in features if isinstance(f, datasets.ClassLabel)}
    schema = rows.features.arrow_schema
    return ArrowTable(name, schema, rows.iter, lambda: content_digest(rows), labels)


def content_digest(rows: datasets.Dataset) -> str:
    """Return a checksum of a data set's types and values.

    Its own fingerprint is random after a `map` or `filter` whose function cannot be pickled.
    """
    digest = hashlib.sha256(str(rows.features).encode())
    for table in rows.with_format("arrow").iter(CHUNK_ROWS):
        for batch in table.combine_chunks().cast(rows.features.arrow_schema).to_batches():
            digest.update(batch.serialize())
    return digest.hexdigest()


def table_of_rows(source: str, rows: Iterable[Any]) -> ArrowTable:
    """Return rows of a program as a table, named `source` in messages.

    They map columns to values, or are tuples of a text, perhaps a second one, and a label.
    """
    mappings = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, tuple | list) and len(row) in (2, 3):
            names = ("text", "label") if len(row) == 2 else ("text", "text_pair", "label")
            row = dict(zip(names, row, strict=True))
        if not isinstance(row, Mapping):
            raise UserError(f"{source}, row {number}: no mapping and no tuple, but {row!r:.80}")
        mappings.append(row)
    return table_of_dataset(source, datasets.Dataset.from_list(mappings))


def joined(tables: Sequence[Table]) -> Table:
    """Return several tables, one after the other, as one whose rows are numbered through."""

    def rows() -> Iterator[Row]:
        every = chain.from_iterable(table.rows() for table in tables)
        return (row._replace(number=number) for number, row in enumerate(every, start=1))

    def digest() -> str:
        digests = ":".join(table.fingerprint for table in tables)
        return hashlib.sha256(digests.encode()).hexdigest()

    table = Table(", ".join(table.source for table in tables), rows, digest)
    table.columns = tuple(dict.fromkeys(chain(*(table.columns for table in tables))))
    return table


def selected(table: Table, column: str, values: Sequence[str]) -> Table:
    """Return the rows of a table that have one of these values in a column."""
    part = Table(
        table.source,
        lambda: (row for row in table.rows() if row.values.get(column) in values),
        lambda: f"{table.fingerprint}:{column} in {', '.join(values)}",
    )
    part.columns, part.unit = table.columns, table.unit
    return part


def check_names(source: str, columns: Iterable[str]) -> None:
    """Raise `UserError` if two columns of `source` have the same name."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(f"{source} names the column {twice[0]!r} twice")


def until_full(
    items: Iterator[T], most: int, largest: int, size: Callable[[T], int] = len
) -> Iterator[T]:
    """Yield items up to a number of them, or until their sizes add up to `largest`."""
    total = 0
    for item in islice(items, most):
        yield item
        total += size(item)
        if total >= largest:
            return


def _characters(row: Row) -> int:
    return sum(len(value) for value in row.values.values() if isinstance(value, str))
