"""Opens tables: files, whose names tell their formats, and data sets on the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import datasets
from huggingface_hub import constants

from tartan.data.table.arrow import (
    ArrowTable,
    is_saved_dataset,
    open_arrow_file,
    open_saved_dataset,
    open_spreadsheet,
    table_of_dataset,
)
from tartan.data.table.base import Table
from tartan.data.table.text import DelimitedTable, JsonTable, Quoting, TextLines
from tartan.errors import UserError, first_line
from tartan.files import check_is_file, check_reachable

KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".arrow": "arrow", ".xlsx": "xlsx", ".txt": "text", ".md": "markdown",
}  # fmt: skip
"""Kind of a file by the ending of its name; one of `COMPRESSIONS` may follow the ending."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Compression of a file by the last ending of its name."""
COLUMNAR = ("parquet", "arrow")
"""Kinds of files that hold columns with types."""
TABLES = ("csv", "tsv", "jsonl", "json", *COLUMNAR, "xlsx")
"""Kinds of files that hold rows of named columns."""


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


def endings_of(kinds: Collection[str]) -> str:
    """Return the endings of the names of files of these kinds, for a message."""
    listed = ", ".join(
        ending for wanted in kinds for ending, kind in KINDS.items() if kind == wanted
    )
    return f"{listed}, or one of these and {' or '.join(COMPRESSIONS)}"


def open_table(path: Path, kinds: Collection[str] = TABLES, quoting: Quoting = "standard") -> Table:
    """Open the table in a file, plain or compressed, or in a folder that `save_to_disk` wrote.

    Only as much is read as tells its columns.
    """
    path = path.expanduser()
    if is_saved_dataset(path):
        return open_saved_dataset(path)
    check_is_file(path)
    written_as = format_of(path, kinds)
    if written_as is None:
        raise UserError(f"{path}: the name must end in {endings_of(kinds)}")
    if written_as.kind == "xlsx":
        return open_spreadsheet(path)
    if written_as.kind in COLUMNAR:
        return open_arrow_file(path, *written_as)
    return open_text(path, written_as, quoting=quoting)


def open_text(
    path: Path, written_as: Format, source: str | None = None, quoting: Quoting = "standard"
) -> Table:
    """Open the table in a text file of the given format; `source` is its name in messages."""
    kind, compression = written_as
    source = source or str(path)
    if kind in ("text", "markdown"):
        return TextLines(path, compression, source)
    if kind in ("csv", "tsv"):
        usual = "," if kind == "csv" else "\t"
        return DelimitedTable(path, compression, source, usual, quoting)
    return JsonTable(path, compression, source, kind)


def open_hub(name: str, config: str | None, cache_dir: Path) -> Mapping[str, ArrowTable]:
    """Return the splits of a data set on the Hub, or of a folder that `datasets` reads."""
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
