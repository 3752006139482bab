"""Reads lines of text as a table: each line is the text of a row, in the column `text`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tartan.data.table.base import Row, Table
from tartan.data.table.lines import Lines


class TextLines(Table):
    """A table of one column, `text`, which has the lines of a text; blank ones are rows too.

    Args:
        lines: the file's lines.
    """

    columns = ("text",)
    schema = pa.schema([("text", pa.string())])
    lines: Lines

    def __init__(self, lines: Lines) -> None:
        self.source, self.path, self.lines = lines.name, lines.path, lines

    def rows(self) -> Iterator[Row]:
        for number, line in self.lines.read():
            text = line.rstrip("\r\n")
            yield Row(number, {"text": text}, (text,))
