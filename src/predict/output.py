"""Where predictions go: standard output, or a file that is whole or not there.

A file grows as `OUTPUT.part`. `OUTPUT.part.json` says how much of it counts and where its input
goes on, and is exchanged after each chunk has reached the disk. Whatever stops the program, what
counts is whole; the rest is cut off when the same command goes on. Both have checksums in the
record: what was damaged meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from src.errors import UserError
from src.predict.writers import Writer
from src.run_folder.durable import flush_folder, write_durably

_LAYOUT = 3
_BLOCK = 1 << 20


class Output(Protocol):
    """Takes chunks in order.

    Attributes:
        rows: rows that are written.
        counts: of them, by label.
        place: where the input goes on; None at its beginning.
        is_complete: whether all rows are written and only `finish` is missing.
    """

    rows: int
    counts: Counter[str]
    place: dict[str, Any] | None
    is_complete: bool

    def append(self, content: bytes, labels: Sequence[str], place: dict[str, Any]) -> None:
        """Write a chunk; it counts once this returns."""
        ...

    def finish(self) -> None:
        """Make the file of it."""
        ...


class StandardOutput:
    """Chunks as they come; nothing is remembered of them."""

    def __init__(self, writer: Writer) -> None:
        self.rows = 0
        self.counts: Counter[str] = Counter()
        self.place: dict[str, Any] | None = None
        self.is_complete = False
        self._write(writer.header())

    def append(self, content: bytes, labels: Sequence[str], place: dict[str, Any]) -> None:
        self._write(content)
        self.rows += len(labels)
        self.counts.update(labels)

    def finish(self) -> None:
        """Nothing is to be done."""

    def _write(self, content: bytes) -> None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


class FileOutput:
    """A file that is begun, or one that goes on (see the module).

    Args:
        target: the file.
        writer: makes the bytes.
        settings: all that the predictions depend on but the input; those of one file are the same.
        resume: whether a part that is there goes on; otherwise it is thrown away.
    """

    def __init__(
        self, target: Path, writer: Writer, settings: Mapping[str, Any], resume: bool
    ) -> None:
        self._target, self._writer, self._settings = target, writer, dict(settings)
        self._part, self._record = part_of(target), record_of(target)
        if not resume:
            self._record.unlink(missing_ok=True)
        stored = self._stored()
        self.rows, self._bytes, self.is_complete = 0, 0, False
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()
        self.place: dict[str, Any] | None = None
        if stored is None:
            self._begin()
        else:
            self._go_on(stored)

    def append(self, content: bytes, labels: Sequence[str], place: dict[str, Any]) -> None:
        with self._part.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._bytes += len(content)
        self._digest.update(content)
        self.rows += len(labels)
        self.counts.update(labels)
        self.place = place
        self._note()

    def finish(self) -> None:
        """Give the file its name; begun again at any moment, it ends the same."""
        self.is_complete = True
        self._note()
        if self._part.exists():
            whole = self._target.with_name(f"{self._target.name}.whole")
            if self._writer.finish(self._part, whole):
                with whole.open("rb+") as file:
                    os.fsync(file.fileno())
                whole.replace(self._target)
                self._part.unlink()
            else:
                self._part.replace(self._target)
            flush_folder(self._target.parent)
        self._record.unlink(missing_ok=True)

    def _begin(self) -> None:
        content = self._writer.header()
        write_durably(self._part, lambda path: path.write_bytes(content))
        self._bytes = len(content)
        self._digest.update(content)
        self._note()

    def _go_on(self, stored: dict[str, Any]) -> None:
        changed = [
            name
            for name in sorted(stored["settings"].keys() | self._settings)
            if stored["settings"].get(name) != self._settings.get(name)
        ]
        if changed:
            name = changed[0]
            before, now = stored["settings"].get(name), self._settings.get(name)
            raise UserError(
                f"{self._part} was begun with {name}={_short(before)}, here it is {_short(now)}; "
                "use the same, or start over with resume=false"
            )
        self.rows, self._bytes, self.place = stored["rows"], stored["bytes"], stored["place"]
        self.counts, self.is_complete = Counter(stored["counts"]), stored["complete"]
        if not self._part.exists() and self.is_complete and self._target.exists():
            return
        size = self._part.stat().st_size if self._part.exists() else 0
        if size < self._bytes:
            raise UserError(f"{self._part} is shorter than it was; start over with resume=false")
        os.truncate(self._part, self._bytes)
        with self._part.open("rb") as file:
            while block := file.read(_BLOCK):
                self._digest.update(block)
        if self._digest.hexdigest() != stored["sha256"]:
            raise UserError(
                f"{self._part} is not what was written (its checksum differs); start over with "
                "resume=false"
            )

    def _note(self) -> None:
        record = {
            "layout": _LAYOUT,
            "settings": self._settings,
            "rows": self.rows,
            "bytes": self._bytes,
            "sha256": self._digest.hexdigest(),
            "place": self.place,
            "counts": dict(self.counts),
            "complete": self.is_complete,
        }
        content = json.dumps(record | {"check": _check_of(record)}, indent=1) + "\n"
        write_durably(self._record, lambda path: path.write_text(content, encoding="utf-8"))

    def _stored(self) -> dict[str, Any] | None:
        if not self._record.is_file():
            return None
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
            known = isinstance(record, dict) and record.get("layout") == _LAYOUT
            known = known and record.pop("check", None) == _check_of(record)
        except (ValueError, RecursionError):
            known = False
        if not known:
            raise UserError(
                f"{self._record} is damaged, or another version's; start over with resume=false"
            )
        return dict(record)


def _check_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def part_of(target: Path) -> Path:
    """Where the rows of an unfinished file lie."""
    return target.with_name(f"{target.name}.part")


def record_of(target: Path) -> Path:
    """What says how much of them counts."""
    return target.with_name(f"{target.name}.part.json")


def check_target(target: Path, overwrite: bool) -> None:
    """Whether a file may be written there.

    Raises:
        UserError: there is a file or a folder already, or no folder to hold it.
    """
    if target.is_dir():
        raise UserError(f"output={target} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise UserError(f"output={target}: there is no folder {target.parent}")
    if target.exists() and not overwrite and not record_of(target).exists():
        raise UserError(
            f"output={target} exists already; name another file, or replace it with overwrite=true"
        )


@contextmanager
def alone_at(target: Path) -> Iterator[None]:
    """Hold the output; the system lets go of it when the process ends, however it ends.

    Raises:
        UserError: another process writes it.
    """
    path = target.with_name(f"{target.name}.part.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UserError(f"another process is writing {target}; wait for it") from error
    except OSError as error:
        raise UserError(f"cannot write to {target.parent} ({error.strerror})") from error
    try:
        yield
    finally:
        lock.release()
        if not record_of(target).exists():
            path.unlink(missing_ok=True)


def _short(value: object) -> str:
    shown = "null" if value is None else str(value)
    return shown if len(shown) <= 40 else f"{shown[:12]}..."
