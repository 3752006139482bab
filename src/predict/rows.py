"""The reader that a format has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from src.errors import UserError
from src.predict.chunks import Reader
from src.predict.columns import Added, Wanted
from src.predict.csv_rows import CsvRows
from src.predict.formats import STREAM, Format
from src.predict.json_rows import JsonRows
from src.predict.lines import Lines
from src.predict.parquet_rows import ParquetRows


def open_rows(path: str, kind: Format, wanted: Wanted, added: Added) -> Reader[Any]:
    """A reader for the file at `path`, or for standard input.

    Raises:
        UserError: there is no such file or column, or one of the columns to add is there already.
    """
    source = None if path == STREAM else Path(path).expanduser()
    if source is not None and source.is_dir():
        raise UserError(f"input={path} is a folder; name a file in it")
    if source is not None and not source.exists():
        raise UserError(f"input={path} does not exist")
    if kind.name == "parquet":
        assert source is not None
        return ParquetRows(source, wanted, added)
    lines = Lines(source, kind.gzipped)
    if kind.name == "jsonl":
        return JsonRows(lines, wanted, added)
    return CsvRows(lines, "\t" if kind.name == "tsv" else ",", wanted, added)
