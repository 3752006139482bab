"""Reads tables in CSV, TSV, JSON, Parquet, spreadsheets and lines of text, and on the Hub.

Python's `csv`, in its strict mode, and `json` are the parsers: `pyarrow`, `polars`, `duckdb` and
`datasets` each read some malformed CSV without an error, with wrong values, and fit rows of JSON
into one schema, by which a missing text becomes null, or a number text.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import datasets
import pandas as pd
import pyarrow as pa
from huggingface_hub import constants
from pyarrow import parquet

from tartan.data.table import (
    UNREADABLE,
    ArrowTable,
    Row,
    Table,
    check_names,
    table_of_dataset,
    table_of_rows,
)
from tartan.errors import UserError, first_line
from tartan.files import check_is_file, check_reachable, sha256_of

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
_LONGEST_FIELD = 1 << 24
"""Maximum length of a field: without it a missing double quote would fill the memory."""
_MOST_VALUES = 1000
"""Number of different values at which a column is one of texts, not of classes."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


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
    digest = partial(sha256_of, path)
    try:
        if written_as == Format("json") and path.read_bytes().lstrip().startswith(b"["):
            return table_of_rows(str(path), json.loads(path.read_bytes()))
        if written_as.kind == "parquet":
            file = parquet.ParquetFile(path, page_checksum_verification=True)
            return ArrowTable(str(path), file.schema_arrow, file.iter_batches, digest)
        if written_as.kind == "xlsx":  # the first sheet, all values as text, as in CSV
            frame = pd.read_excel(path, dtype=str, keep_default_na=False)
            sheet = pa.Table.from_pandas(frame, preserve_index=False)
            return ArrowTable(str(path), sheet.schema, sheet.to_batches, digest)
    except Exception as error:  # a damaged file leads to errors of any class
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    return open_text(path, written_as, quoting=quoting)


def open_text(
    path: Path, written_as: Format, source: str | None = None, quoting: Quoting = "standard"
) -> Table:
    """Open the table in a text file of the given format; `source` is its name in messages."""
    source = source or str(path)
    if written_as.kind == "text":
        return TextLines(path, written_as, source)
    if written_as.kind in ("csv", "tsv"):
        return DelimitedTable(path, written_as, source, quoting)
    return JsonTable(path, written_as, source)


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, ArrowTable]:
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


class TextTable(Table):
    """Base of tables in text files, whose `read` yields the rows."""

    unit = "line"

    def __init__(self, path: Path, written_as: Format, source: str) -> None:
        super().__init__(source, self.read, partial(sha256_of, path))
        self._path, self._compression = path, written_as.compression

    def read(self) -> Iterator[Row]:
        raise NotImplementedError

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers and ends."""
        number = 0
        try:
            with (
                pa.input_stream(str(self._path), self._compression) as stream,
                io.BufferedReader(stream, 1 << 20) as file,
            ):
                for number, line in enumerate(file, start=1):
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.place(number)}: not UTF-8; save the file as UTF-8") from error
        except UNREADABLE as error:
            raise UserError(
                f"{self.source} cannot be read after line {number}: {first_line(error)}"
            ) from error


class TextLines(TextTable):
    """A table of one column, `text`, which has the lines of a text; blank ones are rows too."""

    columns = ("text",)
    schema = pa.schema([("text", pa.string())])

    def read(self) -> Iterator[Row]:
        for number, line in self.lines():
            text = line.rstrip("\r\n")
            yield Row(number, {"text": text}, self.place(number))


class DelimitedTable(TextTable):
    """CSV or TSV: the first row names the columns; quoted fields may hold line breaks.

    Blank lines are left out, and the values of columns without a name.

    Attributes:
        usual: the separator that the file's name implies.
        separator: the one that the header has most of.
    """

    def __init__(self, path: Path, written_as: Format, source: str, quoting: Quoting) -> None:
        super().__init__(path, written_as, source)
        quotes: Any = csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL
        first = [line for _, line in islice(self.lines(), 20)]
        header = next((line for line in first if line.strip()), "")
        self.usual = "," if written_as.kind == "csv" else "\t"
        unquoted = re.sub('"[^"]*"', "", header)
        self.separator = max((self.usual, ",", ";", "\t", "|"), key=unquoted.count)
        # a blank before a quote would make the quotes part of the text
        blanks = any(re.search(rf'{re.escape(self.separator)} +"(?!")', line) for line in first)
        self._options: dict[str, Any] = {"quoting": quotes, "skipinitialspace": blanks}
        _, names = next(self._records(), (0, []))
        self._names = [name.strip() for name in names]
        self.schema = pa.schema([(name, pa.string()) for name in self._names])
        self.columns = tuple(name for name in self._names if name)
        check_names(f"{source}: its header", self.columns)

    def read(self) -> Iterator[Row]:
        names, width = self._names, len(self._names)
        seen: dict[int, set[str]] = defaultdict(set)  # the first different values of each column
        for number, record in islice(self._records(), 1, None):
            place = self.place(number)
            if len(record) != width:
                raise UserError(
                    f"{place}: {len(record)} fields, but the header has {width}; a text that holds "
                    f"{self.separator!r} or line breaks has to be in double quotes"
                )
            if width > 1 and [field.strip("\ufeff ") for field in record] == names:
                raise UserError(f"{place}: repeats the header; remove the line")
            for column, field in enumerate(record):
                if len(seen[column]) < _MOST_VALUES:
                    seen[column].add(field.strip())
            self._check_swallowed(number, record, seen)
            values = {name: value for name, value in zip(names, record, strict=True) if name}
            yield Row(number, values, place, record)

    def _check_swallowed(self, number: int, record: list[str], seen: dict[int, set[str]]) -> None:
        """Check that the lines in a quoted field are no rows, which a stray quote has swallowed.

        Those have as many fields as the header, and in the other columns of one of them are values
        that occur in rows before, or numbers among numbers.
        """
        width = len(record)
        for column, field in enumerate(record):
            lines = field.splitlines()
            # of the line with the quote, and of the last one, a part is in other fields
            first, last = int(column > 0), len(lines) - int(column < width - 1)
            rows = [line.split(self.separator) for line in lines[first:last]]
            if width == 1 or len(lines) < 2 or any(len(row) != width for row in rows):
                continue
            for place, values in enumerate(rows, start=number + first):
                texts = [value.strip(' "') for value in values]
                others = [c for c in range(width) if c != column]
                alike = all(texts[c] and _occurs(texts[c], seen[c], width) for c in others)
                if alike and any(map(str.isalpha, values[column])):
                    raise UserError(
                        f"{self.place(place)}: a row inside a quoted field, which a double quote "
                        'without its counterpart opens; write it twice in a quoted field (""), '
                        "or use quoting=none"
                    )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the fields of each row: header first, no blank rows."""
        csv.field_size_limit(_LONGEST_FIELD)
        lines = (line for _, line in self.lines())
        reader = csv.reader(lines, delimiter=self.separator, strict=True, **self._options)
        width, number = None, 0
        try:
            for record in reader:
                begins, number = number + 1, reader.line_num
                if any(field.strip() for field in record) or (record and len(record) == width):
                    width = width or len(record)
                    yield begins, record
        except csv.Error as error:
            raise UserError(
                f"{self.place(number + 1)}: {first_line(error)} (a double quote inside a quoted "
                'field must be written twice, "", and a quote that opens must be closed)'
            ) from error


class JsonTable(TextTable):
    """A table of JSON objects, one on each line."""

    def __init__(self, path: Path, written_as: Format, source: str) -> None:
        super().__init__(path, written_as, source)
        self.columns = tuple(dict.fromkeys(name for row in self.sample() for name in row.values))

    def read(self) -> Iterator[Row]:
        for number, line in self.lines():
            place, record = self.place(number), line.strip(" \t\r\n")
            if not record:
                continue
            try:
                values = json.loads(record)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{place}: not JSON ({first_line(error)})") from error
            if not isinstance(values, dict):
                raise UserError(f'{place}: expected an object, {{"NAME": VALUE, ...}}')
            yield Row(number, values, place)


def _occurs(value: str, seen: set[str], width: int) -> bool:
    """Return whether a value is among others of its column, or a number among numbers."""
    return value in seen or (width > 2 and all(map(_NUMBER.fullmatch, (value, *seen))))
