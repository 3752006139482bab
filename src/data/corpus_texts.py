"""Reads the unlabelled texts of files, by the reader of tables and its reader of lines."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from src.data.corpus_files import kind_of
from src.data.labelled import text_of
from src.data.table.arrow import ArrowTable
from src.data.table.base import Table
from src.data.table.formats import COMPRESSIONS
from src.data.table.lines import Lines
from src.data.table.open import open_table
from src.errors import UserError

log = logging.getLogger(__name__)

_LARGE = 1 << 27
"""Size of files that take some seconds to read, which is said [bytes]."""


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
    for row in table.rows():
        value = row.values.get(column)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        yield "" if missing else text_of(table, row, column)


def _lines(file: Path) -> Iterator[str]:
    for _, line in Lines(file, COMPRESSIONS.get(file.suffix.lower())).read():
        yield line.rstrip("\r\n")


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    for is_blank, paragraph in groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(paragraph)
