"""Lines of UTF-8 text in a file, plain or compressed, or in standard input."""

from __future__ import annotations

import codecs
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

from src.errors import UserError

LONGEST_ROW = 1 << 24
"""Bytes of a line, or characters of a row, at most: 16 MiB. No text of a task is as long, and a
double quote or a line break that is missing would otherwise fill the memory."""
_BLOCK = 1 << 16
_ZIP = b"PK\x03\x04"


class Lines:
    """Lines with their ends, counted from 1; each reading begins anew.

    A byte order mark at the beginning belongs to no line.

    Args:
        path: the file; None: standard input, of which all readings but the last are of its
            beginning.
        compression: `gzip`, `zstd` or None.

    Attributes:
        name: what messages call it.
        is_marked: whether it begins with a byte order mark, as far as was read.
    """

    def __init__(self, path: Path | None, compression: str | None = None) -> None:
        self.name = "standard input" if path is None else str(path)
        self.is_marked = False
        self._path, self._compression = path, compression
        self._stream: Iterator[bytes] = iter(())
        self._raw: IO[bytes] | None = None
        self._size = None
        if path is None:
            self._stream = _lines_of(sys.stdin.buffer)
        elif path.is_file():
            self._size = path.stat().st_size

    def read(self, last: bool = False) -> Iterator[tuple[int, str]]:
        """The lines with their numbers.

        Args:
            last: whether this is the last reading; standard input is then not kept in memory.

        Raises:
            UserError: the file cannot be opened or unpacked, is not UTF-8 text, or a line is longer
                than `LONGEST_ROW`; names the line.
        """
        number = 0
        try:
            with self._opened(last) as lines:
                for number, raw in enumerate(lines, start=1):
                    yield number, self._decoded(raw, number)
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            raise cannot_be_read(self.name, error, f" (line {number + 1})") from error

    def pieces(self) -> Iterator[str]:
        """The text of a file in pieces of any kind, which lines may be too long for.

        Raises:
            UserError: see `read`.
        """
        decoder = codecs.getincrementaldecoder("utf-8")()
        assert self._path is not None
        try:
            with unpacked(self._path, self._compression) as (self._raw, file):
                for number, raw in enumerate(iter(lambda: file.read(_BLOCK), b"")):
                    if not number:
                        raw = self._checked_beginning(raw)
                    piece = decoder.decode(raw)
                    if "\0" in piece:
                        raise UserError(f"{self.name}: {_NULL}")
                    yield piece
                decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise UserError(f"{self.name}: not UTF-8; convert the file first") from error
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            raise cannot_be_read(self.name, error) from error

    def progress(self) -> tuple[int, int | None]:
        """Bytes of the file that were read, and all of them (None: nobody knows)."""
        return self._raw.tell() if self._raw and not self._raw.closed else 0, self._size

    @contextmanager
    def _opened(self, last: bool) -> Iterator[Iterator[bytes]]:
        if self._path is not None:
            with unpacked(self._path, self._compression) as (self._raw, file):
                yield _lines_of(file)
        elif last:
            yield self._stream
        else:
            self._stream, lines = tee(self._stream)
            yield lines

    def _decoded(self, raw: bytes, number: int) -> str:
        where = f"{self.name}, line {number}"
        if len(raw) > LONGEST_ROW:
            raise UserError(f"{where}: longer than {LONGEST_ROW >> 20} MiB, which no row may be")
        if number == 1:
            raw = self._checked_beginning(raw)
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not UTF-8; convert the file first") from error
        if "\0" in line:
            raise UserError(f"{where}: {_NULL}")
        return line

    def _checked_beginning(self, raw: bytes) -> bytes:
        if raw.startswith(_ZIP):
            raise UserError(
                f"{self.name} is no text but an archive, as Excel's .xlsx is; save it as CSV "
                "(UTF-8)"
            )
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UserError(f"{self.name}, line 1: not UTF-8 but UTF-16; save the file as UTF-8")
        self.is_marked = raw.startswith(codecs.BOM_UTF8)
        return raw.removeprefix(codecs.BOM_UTF8)


_NULL = "holds a null character, as UTF-16 files do; save the file as UTF-8"


@contextmanager
def unpacked(path: Path, compression: str | None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file, and what it holds once decompressed."""
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
    """The line for a file that the system or a decompressor gives up on."""
    reason = getattr(error, "strerror", None) or (str(error).splitlines() or ["damaged"])[0]
    return UserError(f"{name} cannot be read: {reason}{place}")


def _lines_of(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.readline(LONGEST_ROW + 1), b"")
