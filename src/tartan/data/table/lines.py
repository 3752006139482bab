"""Reads lines of UTF-8 text from a file, plain or compressed, or from standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import tee
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from tartan.errors import UserError

LONGEST_ROW = 1 << 24
"""Maximum length of a line and of a row [characters]. No task's text is as long, and without it a
missing double quote or line break would fill the memory.
"""
UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError)
"""Exceptions by which the system, decompressors and Arrow report files that cannot be read."""


_OTHERS = {
    "PK\x03\x04": "an archive, as Excel's .xlsx is; save it as CSV (UTF-8)",
    "\x1f\udc8b": "gzip; let the file's name end in .gz",
    "(\udcb5/\udcfd": "zstd; let the file's name end in .zst",
    "PAR1\x15": "Parquet; let the file's name end in .parquet",
    "ARROW1\0": "Arrow; let the file's name end in .arrow",
}
"""Other kinds of files, by what they begin with, surrogates standing for bytes beyond ASCII."""
_BEGINNINGS = tuple(_OTHERS)


class Lines:
    """Lines with their line ends, counted from 1; each reading starts from the beginning.

    A line feed, a carriage return or both end a line. A byte order mark at the beginning belongs to
    no line.

    Args:
        path: the file; None for standard input.
        compression: `gzip`, `zstd` or None.

    Attributes:
        name: name of the source in messages.
        are_kept: whether lines of standard input are kept in memory, to be read again.
        is_marked: whether the part that was read begins with a byte order mark.
    """

    def __init__(self, path: Path | None, compression: str | None = None) -> None:
        self.name = "standard input" if path is None else str(path)
        self.path, self.are_kept, self.is_marked = path, True, False
        self._compression = compression
        self._raw: IO[bytes] | None = None
        if path is None:
            stream = cast(io.TextIOWrapper, sys.stdin)
            stream.reconfigure(encoding="utf-8", errors="surrogateescape", newline="")
            self._stream = _lines_of(stream, LONGEST_ROW + 1)

    def read(self, longest: int = LONGEST_ROW + 1) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers.

        Args:
            longest: length at which lines of a file are cut into pieces of the same number.

        Raises:
            UserError: the file cannot be opened or unpacked, is not UTF-8 text, or a line is longer
                than `LONGEST_ROW`; the message names the line.
        """
        number, is_first = 1, True
        try:
            with self._opened(longest) as lines:
                for line in lines:
                    if flaw := _flaw_of(line):
                        raise UserError(f"{self.name}, line {number}: {flaw}")
                    if is_first:
                        self.is_marked, is_first = line.startswith("\ufeff"), False
                        line = line.removeprefix("\ufeff")
                    yield number, line
                    number += line.endswith(("\n", "\r"))
        except UNREADABLE as error:
            raise cannot_be_read(self.name, error, f" (line {number})") from error

    def progress(self) -> tuple[int, int | None]:
        """Return the number of the file's bytes that were read, and its size (None: unknown)."""
        size = self.path.stat().st_size if self.path and self.path.is_file() else None
        return self._raw.tell() if self._raw and not self._raw.closed else 0, size

    @contextmanager
    def _opened(self, longest: int) -> Iterator[Iterator[str]]:
        if self.path is not None:
            with (
                unpacked(self.path, self._compression) as (self._raw, file),
                io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="") as text,
            ):
                yield _lines_of(text, longest)
        elif self.are_kept:
            self._stream, lines = tee(self._stream)
            yield lines
        else:
            yield self._stream


@contextmanager
def unpacked(path: Path, compression: str | None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file; yield its raw bytes, and the same file decompressed."""
    with path.open("rb") as raw:
        if compression == "gzip":
            with gzip.GzipFile(fileobj=raw) as file:
                yield raw, cast(IO[bytes], file)
        elif compression == "zstd":
            with pa.CompressedInputStream(raw, "zstd") as stream:
                yield raw, io.BufferedReader(stream)
        else:
            yield raw, raw


def cannot_be_read(name: str, error: Exception, place: str = "") -> UserError:
    """Return the error for a file that the system or a decompressor cannot read."""
    reason = getattr(error, "strerror", None) or (str(error).splitlines() or ["damaged"])[0]
    return UserError(f"{name} cannot be read: {reason}{place}")


def _lines_of(file: io.TextIOWrapper, longest: int) -> Iterator[str]:
    return iter(lambda: file.readline(longest), "")


def _flaw_of(line: str) -> str | None:
    """Return what is wrong with a line, in which surrogates stand for bytes that are not UTF-8."""
    if len(line) > LONGEST_ROW:
        return f"longer than {LONGEST_ROW:,} characters, which no row may be"
    if line.startswith(_BEGINNINGS):
        return f"no text but {next(k for b, k in _OTHERS.items() if line.startswith(b))}"
    if line.startswith(("\udcff\udcfe", "\udcfe\udcff")):
        return "not UTF-8 but UTF-16; save the file as UTF-8"
    if "\0" in line:
        return "holds a null character, as UTF-16 files do; save the file as UTF-8"
    try:
        line.encode()
    except UnicodeEncodeError:
        return "not UTF-8; save it as UTF-8, or: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
    return None
