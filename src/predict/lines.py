"""Lines of a file or of standard input, counted, and recognised when they are read again."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from src.errors import UserError

_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Place:
    """How far a text has been read.

    Attributes:
        offset: bytes before it, after decompression.
        line: lines before it.
        digest: SHA-256 of those bytes.
    """

    offset: int
    line: int
    digest: str


class Lines:
    """Lines of UTF-8, with their ends.

    Args:
        path: the file; None: standard input.
        gzipped: whether it is compressed.

    Attributes:
        name: what messages call it.
        line: number of the last line that was read, from 1.
        marked: whether it begins with a byte order mark, which belongs to no line.
    """

    def __init__(self, path: Path | None, gzipped: bool) -> None:
        self.name = "standard input" if path is None else str(path)
        # closed by `close`
        self._raw: IO[bytes] = sys.stdin.buffer if path is None else path.open("rb")
        self._file = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw)) if gzipped else self._raw
        self._size = path.stat().st_size if path is not None and path.is_file() else None
        self._hash = hashlib.sha256()
        self._offset = 0
        self.line = 0
        self.marked = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw = self._read(self._file.readline)
        if not raw:
            raise StopIteration
        self._hash.update(raw)
        self._offset += len(raw)
        self.line += 1
        if self.line == 1 and raw.startswith(_BOM):
            self.marked = True
            raw = raw[len(_BOM) :]
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.where}: not UTF-8; convert the file first") from error

    @property
    def where(self) -> str:
        """The last line that was read, for messages."""
        return f"{self.name}, line {self.line}"

    @property
    def place(self) -> Place:
        """After the last line that was read."""
        return Place(self._offset, self.line, self._hash.hexdigest())

    def skip_to(self, place: Place) -> None:
        """Read on to `place`, which was noted in an earlier reading.

        Raises:
            UserError: what lies before it is not what it was then.
        """
        while self._offset < place.offset:
            block = self._read(lambda: self._file.read(min(_BLOCK, place.offset - self._offset)))
            if not block:
                break
            self._hash.update(block)
            self._offset += len(block)
        if self._hash.hexdigest() != place.digest:
            raise UserError(
                f"{self.name} has changed since its first rows were predicted; put it back, or "
                "start over with resume=false"
            )
        self.line = place.line

    def progress(self) -> tuple[int, int | None]:
        """Bytes of the file that were read, and all of them (None: nobody knows)."""
        if self._size is None:
            return self._offset, None
        return (self._raw.tell() if self._file is not self._raw else self._offset), self._size

    def close(self) -> None:
        """Close the file; standard input is left open."""
        if self._raw is not sys.stdin.buffer:
            self._file.close()
            self._raw.close()

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(
                f"{self.name}: damaged after line {self.line} ({error}); fetch it again"
            ) from error
