"""Opens tables: files, whose names tell their formats, and data sets on the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import datasets
from huggingface_hub import constants

from tartan.data.table.arrow import ArrowTable, open_columns, table_of_dataset
from tartan.data.table.base import Table
from tartan.data.table.delimited import DelimitedTable
from tartan.data.table.formats import COLUMNAR, TABLES, Format, endings_of, format_of
from tartan.data.table.json_rows import JsonTable
from tartan.data.table.lines import Lines
from tartan.data.table.saved_dataset import is_saved_dataset, open_saved_dataset
from tartan.data.table.text_lines import TextLines
from tartan.errors import UserError, first_line
from tartan.files import check_is_file, check_reachable

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def open_table(path: Path, kinds: Sequence[str] = TABLES) -> Table:
    """Open the table in a file, plain or compressed, or in a folder that `save_to_disk` wrote.

    Only as much is read as tells its columns.

    Args:
        path: the file or folder.
        kinds: the kinds of files that are read.

    Raises:
        UserError: the file does not exist, is of an unknown kind, or its beginning is malformed.
    """
    path = path.expanduser()
    if is_saved_dataset(path):
        return open_saved_dataset(path)
    check_is_file(path)
    if path.suffix.lower() in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet program's own file; save it as CSV (UTF-8)")
    found = format_of(path, kinds)
    if found is None:
        raise UserError(f"{path}: the name must end in {endings_of(kinds)}")
    if found.kind in COLUMNAR:
        return open_columns(path, found)
    return open_lines(path, found)


def open_lines(path: Path | None, written_as: Format) -> Table:
    """Open the table in a text file, or in standard input (None), of the given format.

    Raises:
        UserError: its beginning is malformed.
    """
    lines = Lines(path, written_as.compression)
    if written_as.kind == "text":
        return TextLines(lines)
    if written_as.kind in ("csv", "tsv"):
        return DelimitedTable(lines, "," if written_as.kind == "csv" else "\t")
    return JsonTable(lines, written_as.kind)


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, ArrowTable]:
    """Return the splits of a data set on the Hub, or in a folder that `datasets` reads, as tables.

    Raises:
        UserError: the Hub does not answer, or has no such data set or configuration.
    """
    local = Path(name).expanduser()
    if not local.is_dir() and not constants.HF_HUB_OFFLINE:  # offline: it may be in the Hub's cache
        check_reachable(constants.ENDPOINT, f"data set {name}")
    try:
        found = datasets.load_dataset(
            str(local) if local.is_dir() else name, config, cache_dir=str(cache_dir / "datasets")
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UserError(f"task.hub={name} cannot be loaded: {first_line(error)}") from error
    return {split: table_of_dataset(f"{name}, {split}", rows) for split, rows in found.items()}
