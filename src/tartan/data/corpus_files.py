"""Finds the files of a corpus: one, those that a glob matches, or a folder's; reads their texts."""

from __future__ import annotations

import glob
import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tartan.data.labelled import text_of
from tartan.data.table.arrow import ArrowTable
from tartan.data.table.base import Table
from tartan.data.table.formats import COMPRESSIONS, TABLES, endings_of, format_of
from tartan.data.table.lines import Lines
from tartan.data.table.open import open_table
from tartan.data.table.saved_dataset import is_saved_dataset
from tartan.errors import UserError
from tartan.files import is_inside

log = logging.getLogger(__name__)

CORPUS_KINDS = ("text", "markdown", *TABLES)
"""Kinds of corpus files, in the order in which their texts are read."""
_IN_FOLDERS = ("text", "markdown", "jsonl", "parquet")
"""Kinds of files that are read from a folder; others in it are seldom unlabelled text."""
_LARGE = 1 << 27
"""Size of files that take some seconds to read, which is said [bytes]."""


def files_of(path: Path) -> list[Path]:
    """Return the files that `path` stands for, in the order of their kinds, then of their names.

    A folder that `save_to_disk` wrote stands for itself. Another stands for the texts in it at any
    depth, without files and folders whose names begin with a dot; links may not lead out of it. A
    path with `*`, `?` or `[` that is not itself a file stands for the files that match it (`**`
    matches any number of folders).

    Raises:
        UserError: there are no such files, a file that a glob matches is of an unknown kind, or one
            in a folder is a link to a file elsewhere.
    """
    if is_saved_dataset(path):
        return [path]
    if path.is_dir():
        return _in_folder(path)
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
        files = [file for file in found if file.is_file()]
        if not files:
            raise UserError(f"corpus {path} matches no files")
        return sorted(files, key=lambda file: CORPUS_KINDS.index(kind_of(file)))
    return [path]


def kind_of(file: Path) -> str:
    """Return the kind of a file, one of `CORPUS_KINDS`, by the ending of its name.

    A data set that `save_to_disk` wrote is of the kind `arrow`.

    Raises:
        UserError: the name does not end in any of the known endings.
    """
    if is_saved_dataset(file):
        return "arrow"
    found = format_of(file, CORPUS_KINDS)
    if found is None:
        raise UserError(f"corpus {file}: the name must end in {endings_of(CORPUS_KINDS)}")
    return found.kind


def root_of(path: Path) -> Path:
    """Return the folder relative to which files are named, so that a moved corpus is recognised."""
    if path.is_dir():
        return path
    parts = path.parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:first])


def _in_folder(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    files = sorted(
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    texts = [file for file in files if format_of(file, _IN_FOLDERS)]
    for file in texts:
        if not is_inside(file, folder):
            raise UserError(
                f"corpus {folder}: {file.relative_to(folder)} is a link to a file elsewhere and is "
                f"not read; put the file itself there, or name the files: {folder}/*{file.suffix}"
            )
    if not texts:
        raise UserError(
            f"corpus {folder} is a folder without {endings_of(_IN_FOLDERS)} files; tables of "
            f"another kind are named by a pattern: '{folder}/*.csv'"
        )
    left = (file for file in files if not format_of(file, _IN_FOLDERS))
    others = Counter(file.suffix.lower() or file.name for file in left)
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        log.warning("corpus %s: files that are not read as text are left out: %s", folder, kinds)
    return sorted(texts, key=lambda file: CORPUS_KINDS.index(kind_of(file)))


def texts_in(files: Sequence[Path], column: str) -> Iterator[str]:
    """Yield the texts of files, one after the other; empty files have none.

    Each line of a text file is a text, and each paragraph of Markdown; tables have texts in
    `column`, where a missing value is a blank text.

    Raises:
        UserError: all files are empty, or one is malformed or lacks the column.
    """
    filled = [file for file in files if file.stat().st_size]
    if not filled:
        raise UserError(f"corpus {files[0]} is empty")
    size = sum(file.stat().st_size for file in filled)
    if size > _LARGE:
        log.info("reading %s MB of unlabelled text; later runs find it in the cache", size >> 20)
    for file in filled:
        kind = kind_of(file)
        if kind in ("text", "markdown"):
            lines = _lines(file)
            yield from lines if kind == "text" else _paragraphs(lines)
        else:
            yield from texts_of(open_table(file), column)


def texts_of(table: Table, column: str) -> Iterator[str]:
    """Yield the texts in a column of a table; a missing value, also NaN, is a blank text.

    At the end a warning counts the rows without a value, which take part in sizes but not in
    training.

    Raises:
        UserError: there is no such column, or a value in it is not text.
    """
    if table.columns and column not in table.columns:
        raise UserError(
            f"corpus {table.source} has no {table.entry} {column!r}, only "
            f"{', '.join(map(repr, table.columns))}; name it, as in auxiliary.dapt.column=NAME "
            "(in a program column=NAME)"
        )
    if isinstance(table, ArrowTable) and column in table.columns:
        kind = table.schema.field(column).type
        if "string" not in str(kind):
            raise UserError(f"corpus {table.source}: column {column!r} holds {kind}, not text")
    count, without = 0, 0
    for row in table.rows():
        value = row.values.get(column)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        count, without = count + 1, without + missing
        yield "" if missing else text_of(table, row, column)
    if without:
        log.warning(
            "corpus %s: %s of %s rows have no text in %r; remove them", table.source,
            f"{without:,}", f"{count:,}", column,
        )  # fmt: skip


def _lines(file: Path) -> Iterator[str]:
    for _, line in Lines(file, COMPRESSIONS.get(file.suffix.lower())).read():
        yield line.rstrip("\r\n")


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    for is_blank, paragraph in groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(paragraph)
