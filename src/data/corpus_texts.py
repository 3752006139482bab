"""Reads the unlabelled texts of files, by the reader of tables and its reader of lines."""

from __future__ import annotations

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
    for file in filled:
        kind = kind_of(file)
        if kind in ("text", "markdown"):
            lines = _lines(file)
            yield from lines if kind == "text" else _paragraphs(lines)
        else:
            yield from _in_column(open_table(file), column)


def _lines(file: Path) -> Iterator[str]:
    for _, line in Lines(file, COMPRESSIONS.get(file.suffix.lower())).read():
        yield line.rstrip("\r\n")


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    for is_blank, paragraph in groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            yield "\n".join(paragraph)


def _in_column(table: Table, column: str) -> Iterator[str]:
    if column not in table.columns and (table.columns or table.entry == "column"):
        raise UserError(
            f"corpus {table.source} has no {table.entry} {column!r}, only "
            f"{', '.join(map(repr, table.columns))}; set 'column'"
        )
    kind = str(table.schema.field(column).type) if isinstance(table, ArrowTable) else "string"
    if "string" not in kind:
        raise UserError(f"corpus {table.source}: column {column!r} holds {kind}, not text")
    for row in table.rows(last=True):
        yield "" if row.values.get(column) is None else text_of(table, row, column)
