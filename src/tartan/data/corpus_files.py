"""Finds the files of a corpus: one, those that a glob matches, or a folder's; reads their texts."""

from __future__ import annotations

import glob
import logging
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tartan.data.labelled import text_of
from tartan.data.table.arrow import ArrowTable, is_saved_dataset
from tartan.data.table.base import Table
from tartan.data.table.open import COMPRESSIONS, TABLES, endings_of, format_of, open_table
from tartan.data.table.text import read_lines
from tartan.errors import UserError
from tartan.files import is_inside

log = logging.getLogger(__name__)

_KINDS = ("text", "markdown", *TABLES)
"""Kinds of corpus files, in the order in which their texts are read."""
_IN_FOLDERS = ("text", "markdown", "jsonl", "parquet")
"""Kinds of files that are read from a folder; others in it are seldom unlabelled text."""


def files_of(path: Path) -> list[Path]:
    """Return the files that `path` stands for, in the order of their kinds, then of their names.

    A folder that `save_to_disk` wrote stands for itself. Another stands for the texts in it at any
    depth, without files and folders whose names begin with a dot; links may not lead out of it. A
    path with `*`, `?` or `[` that is not itself a file stands for the files that match it (`**`
    matches any number of folders).
    """
    if is_saved_dataset(path):
        return [path]
    if path.is_dir():
        files = _in_folder(path)
    elif not path.exists() and glob.has_magic(str(path)):
        matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [file for file in sorted(matches) if file.is_file()]
    else:
        return [path]
    if not files:
        raise UserError(f"corpus {path}: no files of text")
    return sorted(files, key=lambda file: _KINDS.index(kind_of(file)))


def kind_of(file: Path) -> str:
    """Return the kind of a file by the ending of its name; `arrow` for a saved data set."""
    if is_saved_dataset(file):
        return "arrow"
    known = format_of(file, _KINDS)
    if known is None:
        raise UserError(f"corpus {file}: the name must end in {endings_of(_KINDS)}")
    return known.kind


def root_of(path: Path) -> Path:
    """Return the folder relative to which files are named, so that a moved corpus is recognised."""
    if path.is_dir():
        return path
    parts = path.parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:first])


def texts_in(files: Sequence[Path], column: str) -> Iterator[str]:
    """Yield the texts of files, one after the other.

    Each line of a text file is a text, and each paragraph of Markdown; tables have texts in
    `column`, where a missing value is a blank text.
    """
    for file in files:
        kind = kind_of(file)
        if kind not in ("text", "markdown"):
            if file.is_dir() or file.stat().st_size:
                yield from texts_of(open_table(file), column)
            continue
        compression = COMPRESSIONS.get(file.suffix.lower())
        lines = (line.rstrip("\r\n") for _, line in read_lines(file, compression))
        yield from lines if kind == "text" else _paragraphs(lines)


def texts_of(table: Table, column: str) -> Iterator[str]:
    """Yield the texts in a column of a table; a missing value, also NaN, is a blank text.

    At the end a warning counts the rows without a value, which take part in sizes but not in
    training.
    """
    if table.columns and column not in table.columns:
        columns = ", ".join(map(repr, table.columns))
        raise UserError(f"corpus {table.source} has no column {column!r}, only {columns}")
    if isinstance(table, ArrowTable) and column in table.columns:
        kind = table.schema.field(column).type
        if "string" not in str(kind):
            raise UserError(f"corpus {table.source}: column {column!r} holds {kind}, not text")
    count, without = 0, 0
    for row in table.rows():
        value = row.values.get(column)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        count, without = count + 1, without + missing
        yield "" if missing else text_of(row, column)
    if without:
        log.warning(
            "corpus %s: %s of %s rows have no text in %r",
            table.source, f"{without:,}", f"{count:,}", column,
        )  # fmt: skip


def _in_folder(folder: Path) -> list[Path]:
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    texts = [file for file in files if format_of(file, _IN_FOLDERS)]
    for file in texts:
        if not is_inside(file, folder):
            raise UserError(f"corpus {folder}: {file.relative_to(folder)} is a link to elsewhere")
    if len(texts) < len(files):
        log.warning("corpus %s: %s files are not text", folder, f"{len(files) - len(texts):,}")
    return texts


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    for is_blank, paragraph in groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(paragraph)
