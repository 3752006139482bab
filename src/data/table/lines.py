"""Reads lines of UTF-8 text from a file, plain or compressed, or from standard input."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, tee
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from src.errors import UserError

LONGEST_ROW = 1 << 24
"""Maximum length of a line [bytes] and of a row [characters]: 16 MiB. No task's text is as long,
and without it a missing double quote or line break would fill the memory.
"""
UNREADABLE = (OSError, EOFError, zlib.error, pa.ArrowException)
"""Exceptions by which the system, decompressors and Arrow report files that cannot be read."""
_PIECE = 1 << 16
"""Number of bytes in a piece of a line."""


class Lines:
    """Lines with their line ends, counted from 1; each reading starts from the beginning.

    A byte order mark at the beginning belongs to no line.

    Args:
        path: the file; None for standard input, of which only the last reading goes past the
            beginning.
        compression: `gzip`, `zstd` or None.

    Attributes:
        name: name of the source in messages.
        is_marked: whether the part that was read begins with a byte order mark.
    """

    def __init__(self, path: Path | None, compression: str | None = None) -> None:
        self.name = "standard input" if path is None else str(path)
        self.path, self.is_marked = path, False
        self._compression = compression
        self._stream = iter(()) if path else _lines_of(sys.stdin.buffer, LONGEST_ROW + 1)
        self._raw: IO[bytes] | None = None

    def read(self, last: bool = False, in_pieces: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers.

        Args:
            last: whether this is the last reading; standard input is then not kept in memory.
            in_pieces: whether to cut lines into numbered pieces, so that they may be of any length.

        Raises:
            UserError: the file cannot be opened or unpacked, is not UTF-8 text, or a line is longer
                than `LONGEST_ROW`; the message names the line.
        """
        number, where = 0, self.name
        decode = codecs.getincrementaldecoder("utf-8")().decode
        try:
            with self._opened(last, _PIECE if in_pieces else LONGEST_ROW + 1) as lines:
                for number, raw in enumerate(chain(lines, [b""]), start=1):
                    where = f"{self.name}, line {number}" if raw and not in_pieces else where
                    if len(raw) > LONGEST_ROW:
                        raise UserError(f"{where}: longer than {LONGEST_ROW >> 20} MiB, which no "
                                        "row may be")  # fmt: skip
                    line = decode(self._checked_beginning(raw) if number == 1 else raw, not raw)
                    if "\0" in line:
                        raise UserError(
                            f"{where}: holds a null character, as UTF-16 files do; save the file "
                            "as UTF-8"
                        )
                    if raw:
                        yield number, line
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not UTF-8; convert the file first") from error
        except UNREADABLE as error:
            place = "" if in_pieces else f" (line {number + 1})"
            raise cannot_be_read(self.name, error, place) from error

    def progress(self) -> tuple[int, int | None]:
        """Return the number of the file's bytes that were read, and its size (None: unknown)."""
        size = self.path.stat().st_size if self.path and self.path.is_file() else None
        return self._raw.tell() if self._raw and not self._raw.closed else 0, size

    @contextmanager
    def _opened(self, last: bool, size: int) -> Iterator[Iterator[bytes]]:
        if self.path is not None:
            with unpacked(self.path, self._compression) as (self._raw, file):
                yield _lines_of(file, size)
        elif last:
            yield self._stream
        else:
            self._stream, lines = tee(self._stream)
            yield lines

    def _checked_beginning(self, raw: bytes) -> bytes:
        if raw.startswith(b"PK\x03\x04"):
            raise UserError(
                f"{self.name} is no text but an archive, as Excel's .xlsx is; save it as CSV "
                "(UTF-8)"
            )
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UserError(f"{self.name}, line 1: not UTF-8 but UTF-16; save the file as UTF-8")
        self.is_marked = raw.startswith(codecs.BOM_UTF8)
        return raw.removeprefix(codecs.BOM_UTF8)


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


def _lines_of(file: IO[bytes], longest: int) -> Iterator[bytes]:
    return iter(lambda: file.readline(longest), b"")
