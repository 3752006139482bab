"""Gathers predictions beside the output file until all are there, so that a kill loses no row.

`OUTPUT.unfinished` has a line for each chunk: a checksum, and in JSON the chunk's content and what
it depends on. A line reaches the disk before the next chunk is predicted. After an interruption,
the same command cuts off what follows the last whole line and goes on from there. In the end the
output is made of all contents.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from src.errors import UserError
from src.files.durable import write_durably
from src.files.process_lock import process_lock
from src.predict.writer import Writer


class Output:
    """Appends chunks of predictions to the output, continuing after what was gathered before.

    Args:
        target: the output file; None for standard output, which cannot be resumed.
        writer: makes the output of the rows.
        settings: all that the rows depend on, except the input, as plain JSON values.
        resume: whether to continue what an interrupted process gathered, or to discard it.

    Attributes:
        counts: number of rows by predicted label.
        digests: of each chunk of the input whose predictions are there (see `Table.digest`).

    Raises:
        UserError: the gathered rows were predicted with other settings.
    """

    def __init__(
        self, target: Path | None, writer: Writer, settings: Mapping[str, Any], resume: bool
    ) -> None:
        self._target, self._writer, self._settings = target, writer, settings
        self.counts: Counter[str] = Counter()
        self.digests: list[str] = []
        if target is None:
            self._print(writer.header())
            return
        self._gathered = gathered_of(target)
        if not resume:
            self._gathered.unlink(missing_ok=True)
        end = 0
        for length, chunk in self._chunks():
            self._check(chunk["settings"])
            self.counts.update(chunk["counts"])
            self.digests.append(chunk["input"])
            end += length
        if self._gathered.exists():
            os.truncate(self._gathered, end)

    def append(self, content: bytes, counts: Mapping[str, int], digest: str) -> None:
        """Write a chunk: when this returns, it survives an interruption.

        Args:
            content: the rows with their predictions (see `Writer.content`).
            counts: number of rows by predicted label.
            digest: that of the same rows in the input.
        """
        if self._target is None:
            self._print(content)
        else:
            chunk = {"settings": self._settings, "counts": counts, "input": digest}
            line = json.dumps({**chunk, "content": base64.b64encode(content).decode()}).encode()
            with self._gathered.open("ab") as file:
                file.write(_checksum(line) + b" " + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self.counts.update(counts)

    def finish(self) -> None:
        """Make the output file of all chunks; an interrupted call can be repeated."""
        if self._target is not None:
            write_durably(self._target, lambda path: self._writer.write(self._contents(), path))
            self._gathered.unlink(missing_ok=True)

    def _chunks(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the gathered chunks with their lengths in bytes, up to a torn or damaged one."""
        if self._gathered.exists():
            with self._gathered.open("rb") as file:
                for line in file:
                    checksum, _, content = line.removesuffix(b"\n").partition(b" ")
                    if not line.endswith(b"\n") or checksum != _checksum(content):
                        return
                    yield len(line), json.loads(content)

    def _contents(self) -> Iterator[bytes]:
        rows = 0
        for _, chunk in self._chunks():
            rows += sum(chunk["counts"].values())
            yield base64.b64decode(chunk["content"])
        if rows < self.counts.total():
            raise UserError(f"{self._gathered} was damaged meanwhile; run the same command again")

    def _check(self, before: Mapping[str, Any]) -> None:
        for name in sorted(before.keys() | self._settings):
            then, now = before.get(name), self._settings.get(name)
            if then != now:
                raise UserError(
                    f"{self._gathered} was begun with {name}={then!s:.40}, here it is {now!s:.40}; "
                    "use the same, or start over with resume=false"
                )

    def _print(self, content: bytes) -> None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def gathered_of(target: Path) -> Path:
    """Return the path of the file in which the rows of an output file are gathered."""
    return target.with_name(f"{target.name}.unfinished")


@contextmanager
def exclusive_output(target: Path, resume: bool = True, overwrite: bool = False) -> Iterator[None]:
    """Lock an output file until the `with` block ends.

    Args:
        target: the output file.
        resume: whether to continue what an interrupted process gathered.
        overwrite: whether a finished file may be replaced.

    Raises:
        UserError: another process writes the file, it exists already, or its folder does not exist.
    """
    if target.is_dir():
        raise UserError(f"output={target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise UserError(f"output={target}: there is no folder {target.parent}")
    lock = target.with_name(f"{target.name}.lock")
    with process_lock(lock, f"another process is writing {target}; wait for it"):
        try:  # inside, so that a lock that a kill has left is removed
            goes_on = resume and gathered_of(target).exists()
            if target.exists() and not overwrite and not goes_on:
                raise UserError(
                    f"output={target} exists already; name another file, or replace it with "
                    "overwrite=true"
                )
            yield
        finally:
            if not gathered_of(target).exists():
                lock.unlink(missing_ok=True)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
