"""A file's table, by the file's name."""

from __future__ import annotations

from pathlib import Path

from src.data.checksum import check_is_file
from src.data.table.base import Table
from src.data.table.delimited import DelimitedTable
from src.data.table.json_rows import JsonLinesTable, JsonTable, is_list
from src.data.table.parquet import ParquetTable
from src.errors import UserError

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def open_table(path: Path) -> Table:
    """The table in a file: CSV, TSV, JSONL, JSON or Parquet, plain or gzipped.

    Only what tells its columns is read.

    Raises:
        UserError: there is no such file, it is of another kind, or its beginning is malformed.
    """
    path = path.expanduser()
    check_is_file(path)
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet program's own file; save it as CSV (UTF-8)")
    if kind == ".csv":
        return DelimitedTable(path, ",")
    if kind == ".tsv":
        return DelimitedTable(path, "\t")
    if kind == ".parquet":
        return ParquetTable(path)
    if kind in (".jsonl", ".ndjson"):
        return JsonLinesTable(path)
    if kind == ".json":
        return JsonTable(path) if is_list(path) else JsonLinesTable(path)
    raise UserError(f"{path}: the name must end in {', '.join(ENDINGS)}, or one of these and .gz")
