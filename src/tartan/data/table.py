"""Tables: rows of named columns, each with its place in a file, a data set or a program's list.

Python's `csv`, in its strict mode, and `json` are the parsers, because `pyarrow`, `polars` and
`datasets` read some malformed CSV and JSON without an error, with wrong values.
"""

import csv
import hashlib
import io
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import datasets
import pandas as pd
import pyarrow as pa
from huggingface_hub import constants
from pyarrow import parquet

from tartan.errors import UserError, first_line
from tartan.files import check_is_file, check_reachable, sha256_of

T = TypeVar("T", bound=Sized)

UNREADABLE = (OSError, pa.ArrowException)
"""Exceptions by which the system and Arrow report files that cannot be read."""
CHUNK_ROWS, CHUNK_CHARACTERS = 1024, 1 << 24
"""Maximum number of rows in a chunk, and of characters at which it ends early."""
KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".xlsx": "xlsx", ".txt": "text",
}  # fmt: skip
"""Kind of a file by the ending of its name; one of `COMPRESSIONS` may follow the ending."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Compression of a file by the last ending of its name."""
TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
"""Kinds of files that hold rows of named columns."""
Quoting: TypeAlias = Literal["standard", "none"]
"""`standard` for fields that may be in double quotes; `none` where these are ordinary characters"""
Examples: TypeAlias = str | os.PathLike[str] | datasets.Dataset | pd.DataFrame | Iterable[Any]
"""Labelled examples: a file or several, a data set, a data frame, or rows: mappings or tuples."""
_LONGEST_FIELD = 1 << 24
"""Maximum length of a field: without it a missing double quote would fill the memory."""
_MOST_VALUES = 1000  # number of different values at which a column is one of texts, not of classes
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_QUOTED = re.compile(r'\s+".*"\s*', re.DOTALL)


class Row(NamedTuple):
    """A row: its line or number, from 1, its values by column, and where it is, for messages."""

    number: int
    values: Mapping[str, Any]
    place: str


@dataclass
class Table:
    """Rows of named columns; each call of `rows` reads them anew, in order."""

    source: str  # the file's path, or the data set's name
    columns: tuple[str, ...]  # of JSON lines, those of the first rows; empty without a header
    rows: Callable[[], Iterator[Row]]
    digest: Callable[[], str]  # returns a string that changes when the content changes
    unit: str = "row"  # what `Row.number` counts: `line` or `row`
    schema: pa.Schema | None = None  # None where rows have other columns each
    separator: str | None = None  # between the fields of a line
    unlabelled: bool = False  # no label is given, as in the test splits of some benchmarks

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise UserError(f"{self.source} names the column {twice[0]!r} twice")

    @cached_property
    def fingerprint(self) -> str:
        return self.digest()

    def chunks(self) -> Iterator[list[Row]]:
        """Yield all rows, some at a time that fit into memory; which depends on them alone."""
        rows = self.rows()
        while some := list(until_full(rows, CHUNK_ROWS, CHUNK_CHARACTERS, _characters)):
            yield some


def arrow_table(
    source: str,
    schema: pa.Schema,
    read: Callable[[int], Iterable[pa.RecordBatch | pa.Table]],
    digest: Callable[[], str],
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Return columns with types as a table; `read` yields their rows, at most so many at a time.

    `labels` has the names of labels, by the columns that hold their indices; -1 is no label.
    """

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch in read(CHUNK_ROWS):
                for values in batch.to_pylist():
                    number += 1
                    for column, names in (labels or {}).items():
                        label = values[column]
                        values[column] = None if label is None or label < 0 else names[label]
                    yield Row(number, values, f"{source}, row {number}")
        except UNREADABLE as error:
            raise UserError(
                f"{source}: unreadable after row {number}: {first_line(error)}"
            ) from error

    return Table(source, tuple(schema.names), rows, digest, schema=schema)


def table_of_dataset(name: str, rows: datasets.Dataset) -> Table:
    """Return a data set as a table; labels that it stores as indices are read as their names."""
    rows = rows.with_format("arrow")
    features = rows.features.items()
    labels = {name: f.names for name, f in features if isinstance(f, datasets.ClassLabel)}
    schema, digest = rows.features.arrow_schema, partial(content_digest, rows)
    table = arrow_table(name, schema, rows.iter, digest, labels)
    first = [row.values[column] for row in islice(table.rows(), 100) for column in labels]
    table.unlabelled = bool(first) and all(label is None for label in first)
    return table


def content_digest(rows: datasets.Dataset) -> str:
    """Return a checksum of a data set's types and values.

    Its own fingerprint is random after a `map` or `filter` whose function cannot be pickled.
    """
    digest = hashlib.sha256(str(rows.features).encode())
    for table in rows.with_format("arrow").iter(CHUNK_ROWS):
        for batch in table.combine_chunks().cast(rows.features.arrow_schema).to_batches():
            digest.update(batch.serialize())
    return digest.hexdigest()


def table_of_rows(source: str, rows: Iterable[Any]) -> Table:
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

    columns = dict.fromkeys(chain(*(table.columns for table in tables)))
    return Table(", ".join(table.source for table in tables), tuple(columns), rows, digest)


def selected(table: Table, column: str, values: Sequence[str]) -> Table:
    """Return the rows of a table that have one of these values in a column."""
    return Table(
        table.source,
        table.columns,
        lambda: (row for row in table.rows() if row.values.get(column) in values),
        lambda: f"{table.fingerprint}:{column} in {', '.join(values)}",
        table.unit,
    )


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


class Format(NamedTuple):
    """A file's kind, and `gzip` or `zstd` where the file is compressed as a whole."""

    kind: str
    compression: str | None = None


def format_of(path: Path, kinds: Collection[str]) -> Format | None:
    """Return the format that a file's name tells; None where its kind is not one of `kinds`."""
    name, last = path.name.lower(), path.suffix.lower()
    compression = COMPRESSIONS.get(last)
    kind = KINDS.get(Path(name.removesuffix(last)).suffix if compression else last)
    return Format(kind, compression) if kind is not None and kind in kinds else None


def open_table(path: Path, kinds: Collection[str] = TABLES, quoting: Quoting = "standard") -> Table:
    """Open the table in a file, of which only as much is read as tells its columns."""
    path = path.expanduser()
    check_is_file(path)
    written_as = format_of(path, kinds)
    if written_as is None:
        endings = ", ".join(ending for ending, kind in KINDS.items() if kind in kinds)
        raise UserError(f"{path}: the name must end in {endings}; .gz or .zst may follow")
    source, digest = str(path), partial(sha256_of, path)
    try:
        if written_as == Format("json") and path.read_bytes().lstrip().startswith(b"["):
            return table_of_rows(source, json.loads(path.read_bytes()))
        if written_as.kind == "parquet":
            file = parquet.ParquetFile(path, page_checksum_verification=True)
            return arrow_table(source, file.schema_arrow, file.iter_batches, digest)
        if written_as.kind == "xlsx":  # the first sheet, all values as text, as in CSV
            frame = pd.read_excel(path, dtype=str, keep_default_na=False)
            return table_of_dataset(source, datasets.Dataset.from_pandas(frame))
    except Exception as error:  # a damaged file leads to errors of any class
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    if written_as.kind in ("csv", "tsv"):
        delimited = Delimited(path, written_as, quoting)
        schema = pa.schema([(name, pa.string()) for name in delimited.names])
        columns, separator = tuple(delimited.names), delimited.separator
        return Table(source, columns, delimited.rows, digest, "line", schema, separator)
    if written_as.kind == "text":
        rows, schema = partial(_rows_of_text, path, written_as), pa.schema([("text", pa.string())])
        return Table(source, ("text",), rows, digest, "line", schema)
    rows = partial(_rows_of_json, path, written_as)
    columns = tuple(dict.fromkeys(name for row in islice(rows(), 100) for name in row.values))
    return Table(source, columns, rows, digest, "line")


def table_of(examples: Examples, name: str) -> Table:
    """Return labelled examples as a table; `name` is their argument's, for messages."""
    if isinstance(examples, str | os.PathLike):
        return open_table(Path(examples))
    if isinstance(examples, pd.DataFrame):
        examples = datasets.Dataset.from_pandas(examples, preserve_index=False)
    if isinstance(examples, datasets.Dataset):
        return table_of_dataset(name, examples)
    if isinstance(examples, Sequence) and all(isinstance(p, str | os.PathLike) for p in examples):
        return joined([open_table(Path(path)) for path in examples])
    rows: Any = examples
    if hasattr(rows, "__getitem__"):  # a torch data set has no iterator
        rows = [rows[index] for index in range(len(rows))]
    return table_of_rows(name, rows)


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, Table]:
    """Return the splits of a data set on the Hub, or of a folder that `datasets` reads."""
    splits = load_from_hub(f"task.hub={name}", name, config, None, cache_dir)
    return {split: table_of_dataset(f"{name}, {split}", rows) for split, rows in splits.items()}


def load_from_hub(
    option: str, name: str, config: str | None, split: str | None, cache_dir: Path
) -> Any:
    """Return a split of a data set on the Hub, or of a folder; all of them where `split` is None.

    A `UserError` that begins with `option` says why it cannot be loaded.
    """
    local, folder = Path(name).expanduser(), str(cache_dir / "datasets")
    if not local.is_dir() and not constants.HF_HUB_OFFLINE:  # offline: it may be in the Hub's cache
        check_reachable(constants.ENDPOINT, f"data set {name}")
    path = str(local) if local.is_dir() else name
    try:
        return datasets.load_dataset(path, config, split=split, cache_dir=folder)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UserError(f"{option} cannot be loaded: {first_line(error)}") from error


def _lines(path: Path, written_as: Format) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with (
            pa.input_stream(str(path), written_as.compression) as stream,
            io.BufferedReader(stream, 1 << 20) as file,
        ):
            for number, line in enumerate(file, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}, line {number}: not UTF-8; save the file as UTF-8") from error
    except UNREADABLE as error:
        raise UserError(f"{path}: unreadable after line {number}: {first_line(error)}") from error


def _rows_of_text(path: Path, written_as: Format) -> Iterator[Row]:
    """Yield the lines as texts; blank ones are rows too."""
    for number, line in _lines(path, written_as):
        yield Row(number, {"text": line.rstrip("\r\n")}, f"{path}, line {number}")


def _rows_of_json(path: Path, written_as: Format) -> Iterator[Row]:
    for number, line in _lines(path, written_as):
        place, record = f"{path}, line {number}", line.strip(" \t\r\n")
        if not record:
            continue
        try:
            values = json.loads(record)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: not JSON ({first_line(error)})") from error
        if not isinstance(values, dict):
            raise UserError(f'{place}: expected an object, {{"NAME": VALUE, ...}}')
        yield Row(number, values, place)


class Delimited:
    """CSV or TSV: the first row names the columns; quoted fields may hold line breaks.

    Blank lines are left out. The separator is the one that the header has most of; a column without
    a name is named as in pandas.
    """

    def __init__(self, path: Path, written_as: Format, quoting: Quoting) -> None:
        self._path, self._format = path, written_as
        first = [line for _, line in islice(_lines(path, written_as), 20)]
        unquoted = re.sub('"[^"]*"', "", next(filter(str.strip, first), ""))
        usual = "," if written_as.kind == "csv" else "\t"
        self.separator = max((usual, ",", ";", "\t", "|"), key=unquoted.count)
        # a blank before a quote would make the quotes part of the text
        blanks = any(re.search(rf'(^|{re.escape(self.separator)}) +"(?!")', one) for one in first)
        self._options: dict[str, Any] = {
            "quoting": csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL,
            "skipinitialspace": blanks,
        }
        begins, names = next(self._records(), (0, []))
        for line, _, _ in self._rows_within(begins, names):
            raise self._swallowed(line)
        self._header = [name.strip() for name in names]
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(self._header)]

    def rows(self) -> Iterator[Row]:
        width = len(self.names)
        seen: dict[int, set[str]] = defaultdict(set)  # the first different values of each column
        inner: list[tuple[list[str], int, int, list[str]]] = []  # lines that could be rows
        for number, record in islice(self._records(), 1, None):
            place = f"{self._path}, line {number}"
            if len(record) != width:
                raise UserError(
                    f"{place}: {len(record)} fields, but the header has {width}; a text that holds "
                    f"{self.separator!r} or line breaks has to be in double quotes"
                )
            if width > 1 and [field.strip("\ufeff ") for field in record] == self._header:
                raise UserError(f"{place}: repeats the header; remove the line")
            for column, field in enumerate(record):
                if len(seen[column]) < _MOST_VALUES:
                    seen[column].add(field.strip())
            inner += [(record, *row) for row in self._rows_within(number, record)]
            yield Row(number, dict(zip(self.names, record, strict=True)), place)
        # a stray quote has swallowed one whose other values are like those of its columns
        for record, line, column, texts in inner:
            near = math.inf if width > 2 else record[column].count("\n")
            others = [c for c in range(width) if c != column]
            if all(texts[c] and _occurs(texts[c], record[c], seen[c], near) for c in others):
                raise self._swallowed(line)

    def _rows_within(self, number: int, record: list[str]) -> Iterator[tuple[int, int, list[str]]]:
        """Yield the lines in a quoted field that could be rows: line, column of the field, values.

        All whole lines in the field have as many fields as the header.
        """
        width = len(record)
        for column, field in enumerate(record):
            lines = field.splitlines()
            # of the line with the quote, and of the last one, a part is in other fields
            first, last = int(column > 0), len(lines) - int(column < width - 1)
            rows = [line.split(self.separator) for line in lines[first:last]]
            if width == 1 or len(lines) < 2 or any(len(row) != width for row in rows):
                continue
            for line, values in enumerate(rows, start=number + first):
                if any(map(str.isalpha, values[column])):
                    yield line, column, [value.strip(' "') for value in values]

    def _swallowed(self, line: int) -> UserError:
        return UserError(
            f"{self._path}, line {line}: a row inside a quoted field; write quotes in it twice "
            '(""), or use quoting=none'
        )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the fields of each row: header first, no blank rows."""
        csv.field_size_limit(_LONGEST_FIELD)
        lines = ((raw := line) for _, line in _lines(self._path, self._format))
        reader = csv.reader(lines, delimiter=self.separator, strict=True, **self._options)
        width, number, raw = None, 0, ""
        try:
            for record in reader:
                begins, number = number + 1, reader.line_num
                quoting = self._options["quoting"] != csv.QUOTE_NONE and '""' not in raw
                if quoting and begins == number and any(map(_QUOTED.fullmatch, record)):
                    raise UserError(
                        f"{self._path}, line {begins}: a blank before a double quote; remove it, "
                        "or use quoting=none"
                    )
                if any(field.strip() for field in record) or (record and len(record) == width):
                    width = width or len(record)
                    yield begins, record
        except csv.Error as error:
            raise UserError(
                f"{self._path}, line {number + 1}: {first_line(error)} (a double quote inside a "
                'quoted field must be written twice, "", and a quote that opens must be closed)'
            ) from error


def _occurs(value: str, own: str, seen: set[str], near: float) -> bool:
    """Return whether a value is among others of its column, or a number near its row's own."""
    if value in seen or not all(map(_NUMBER.fullmatch, (value, own.strip(), *seen))):
        return value in seen
    return abs(float(value) - float(own)) <= near
