"""Opens the table in a file; the file's name tells its format."""

from __future__ import annotations

from pathlib import Path

import datasets

from src.data.table.arrow import DatasetTable, open_ipc, open_parquet
from src.data.table.base import Table
from src.data.table.delimited import DelimitedTable
from src.data.table.formats import TABLES, Format, endings_of, format_of
from src.data.table.json_rows import JsonTable
from src.data.table.lines import Lines
from src.errors import UserError
from src.files.checksum import check_is_file

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def open_table(path: Path) -> Table:
    """Open the table in a file, plain or compressed, or in a folder that `save_to_disk` wrote.

    Only as much is read as tells its columns.

    Raises:
        UserError: the file does not exist, is of an unknown kind, or its beginning is malformed.
    """
    path = path.expanduser()
    if (path / "dataset_info.json").is_file() and (path / "state.json").is_file():
        return DatasetTable(str(path), datasets.load_from_disk(str(path)))
    check_is_file(path)
    if path.suffix.lower() in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet program's own file; save it as CSV (UTF-8)")
    found = format_of(path, TABLES)
    if found is None:
        raise UserError(f"{path}: the name must end in {endings_of(TABLES)}")
    if found.kind in ("parquet", "arrow"):
        return (open_parquet if found.kind == "parquet" else open_ipc)(path, found.compression)
    return open_lines(path, found)


def open_lines(path: Path | None, written_as: Format) -> Table:
    """Open the table in a text file, or in standard input (None), of the given format.

    Raises:
        UserError: its beginning is malformed.
    """
    lines = Lines(path, written_as.compression)
    if written_as.kind in ("csv", "tsv"):
        return DelimitedTable(lines, "," if written_as.kind == "csv" else "\t")
    return JsonTable(lines, written_as.kind)
