"""Writes predictions to standard output, or to a file that can be resumed after an interruption.

Rows are appended to `OUTPUT.part`. The record `OUTPUT.part.json` says how many bytes of it are
valid and where the input continues; it is replaced after each chunk has reached the disk. After an
interruption, the same command cuts off what lies beyond the valid bytes and continues. The record
has a checksum of these bytes and one of itself, so that damage is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from src.data.table.base import BEGINNING
from src.errors import UserError
from src.files.durable import flush_folder, write_durably
from src.files.process_lock import process_lock

_LAYOUT = 4
"""Version of the formats of `OUTPUT.part` and of its record."""
_ANEW = "start over with resume=false"
"""Advice at the end of a message."""


@dataclass
class Written:
    """The record of what was written so far.

    Attributes:
        settings: all that the predictions depend on, except the input; they must not change in a
            file.
        rows: number of rows written.
        bytes: number of valid bytes in `OUTPUT.part`.
        sha256: checksum of these bytes.
        counts: number of rows by predicted label.
        place: where the input continues (see `Chunk.place`).
        is_complete: whether all rows are in `OUTPUT.part`, and only the final file is missing.
    """

    settings: dict[str, Any]
    rows: int = 0
    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    counts: Mapping[str, int] = field(default_factory=dict)
    place: Mapping[str, Any] = field(default_factory=lambda: BEGINNING)
    is_complete: bool = False


class Output:
    """Appends chunks of predictions to the output, continuing after what was written before.

    Args:
        target: the output file; None for standard output, which cannot be resumed.
        settings: see `Written`.
        resume: whether to continue an existing `OUTPUT.part`; otherwise it is discarded.

    Raises:
        UserError: `OUTPUT.part` was begun with other settings, or is damaged.
    """

    def __init__(self, target: Path | None, settings: dict[str, Any], resume: bool) -> None:
        self._target, self.written, self._digest = target, Written(settings), hashlib.sha256()
        if target is None:
            return
        self._part, self._record = target.with_name(f"{target.name}.part"), record_of(target)
        if resume and self._record.is_file():
            self.written = self._stored(settings)
            if self.written.is_complete and not self._part.exists() and target.exists():
                return
            size = self._part.stat().st_size if self._part.exists() else -1
            if size < self.written.bytes:
                raise UserError(f"{self._part} is shorter than it was; {_ANEW}")
            os.truncate(self._part, self.written.bytes)
            with self._part.open("rb") as file:
                self._digest = hashlib.file_digest(file, "sha256")
            if self._digest.hexdigest() != self.written.sha256:
                raise UserError(
                    f"{self._part} is not what was written (its checksum differs); {_ANEW}"
                )
        else:
            self._record.unlink(missing_ok=True)
            self._part.write_bytes(b"")
            self._note()

    def append(self, content: bytes, labels: Sequence[str], place: Mapping[str, Any]) -> None:
        """Write a chunk durably: after this returns, it survives an interruption."""
        written = self.written
        written.rows, written.bytes = written.rows + len(labels), written.bytes + len(content)
        written.counts, written.place = Counter(written.counts) + Counter(labels), place
        if self._target is None:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            return
        with self._part.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._digest.update(content)
        written.sha256 = self._digest.hexdigest()
        self._note()

    def finish(self, write: Callable[[Path, Path], object]) -> None:
        """Let `write` make the final file of `OUTPUT.part`; an interrupted call can be repeated."""
        if self._target is None:
            return
        self.written.is_complete = True
        self._note()
        if self._part.exists():
            whole = self._target.with_name(f"{self._target.name}.whole")
            write_durably(whole, lambda scratch: write(self._part, scratch))
            whole.replace(self._target)
            flush_folder(self._target.parent)
            self._part.unlink()
        self._record.unlink()

    def _note(self) -> None:
        record = {"layout": _LAYOUT, **vars(self.written)}
        content = json.dumps(record | {"check": _check_of(record)}, indent=1) + "\n"
        write_durably(self._record, lambda path: path.write_text(content, encoding="utf-8"))

    def _stored(self, settings: dict[str, Any]) -> Written:
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
            if record.pop("check") != _check_of(record) or record.pop("layout") != _LAYOUT:
                raise ValueError("not as it was written")
            stored = Written(**record)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UserError(f"{self._record} is damaged, or another version's; {_ANEW}") from error
        for name in sorted(stored.settings.keys() | settings):
            before, now = stored.settings.get(name), settings.get(name)
            if before != now:
                raise UserError(
                    f"{self._part} was begun with {name}={before!s:.40}, here it is "
                    f"{now!s:.40}; use the same, or {_ANEW}"
                )
        return stored


def _check_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def record_of(target: Path) -> Path:
    """Return the path of the record of an unfinished output file."""
    return target.with_name(f"{target.name}.part.json")


@contextmanager
def exclusive_output(target: Path, overwrite: bool = False) -> Iterator[None]:
    """Lock an output file until the process ends.

    Args:
        target: the output file.
        overwrite: whether a finished file may be replaced.

    Raises:
        UserError: another process writes the file, it exists already, or its folder does not exist.
    """
    if target.is_dir():
        raise UserError(f"output={target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise UserError(f"output={target}: there is no folder {target.parent}")
    if target.exists() and not overwrite and not record_of(target).exists():
        raise UserError(
            f"output={target} exists already; name another file, or replace it with overwrite=true"
        )
    lock = target.with_name(f"{target.name}.part.lock")
    with process_lock(lock, f"another process is writing {target}; wait for it"):
        try:
            yield
        finally:
            if not record_of(target).exists():
                lock.unlink(missing_ok=True)
