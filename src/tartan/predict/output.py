"""Gathers predictions beside the output file until all are there, so that a kill loses none.

`OUTPUT.unfinished` has a line for each chunk: a checksum, and in JSON the chunk's probabilities and
what they depend on. A line reaches the disk before the next chunk is predicted. After an
interruption, the same command reads the input anew and writes the output anew, and predicts only
what follows the last whole line.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tartan.errors import UserError
from tartan.files import disk_advice, process_lock


class UnfinishedPredictions:
    """The predictions that were made for an output file so far.

    Args:
        target: the output file.
        settings: all that predictions depend on, except the input, as plain JSON values.
        resume: whether to go on with what an interrupted process gathered, or to discard it.

    Attributes:
        rows: number of rows that were read from what was gathered before.
    """

    def __init__(self, target: Path, settings: Mapping[str, Any], resume: bool) -> None:
        self._path, self._settings, self.rows = unfinished_file(target), settings, 0
        if not resume:
            self._path.unlink(missing_ok=True)

    def read(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each chunk's digest and probabilities, then cut off what is torn or damaged."""
        if not self._path.exists():
            return
        end = 0
        with self._path.open("rb") as file:
            for line in file:
                checksum, _, content = line.removesuffix(b"\n").partition(b" ")
                if not line.endswith(b"\n") or checksum != _checksum(content):
                    break
                end += len(line)
                chunk = json.loads(content)
                for name, now in self._settings.items():
                    if (then := chunk["settings"].get(name)) != now:
                        raise UserError(
                            f"{self._path} was begun with {name}={then!s:.40}, here it is "
                            f"{now!s:.40}; use the same, or start over with resume=false"
                        )
                values = np.frombuffer(bytes.fromhex(chunk["probabilities"]), np.float32)
                self.rows += chunk["rows"]
                yield chunk["input"], values.reshape(chunk["rows"], -1)
        os.truncate(self._path, end)

    def append(self, digest: str, probabilities: np.ndarray) -> None:
        """Add a chunk: when this returns, it survives an interruption.

        Args:
            digest: that of the chunk in the input (see `Chunk.digest`).
            probabilities: probability of each label, float32 `(rows, labels)`.
        """
        chunk = {"settings": self._settings, "input": digest, "rows": len(probabilities)}
        line = json.dumps({**chunk, "probabilities": probabilities.tobytes().hex()}).encode()
        with self._path.open("ab") as file:
            file.write(_checksum(line) + b" " + line + b"\n")
            file.flush()
            os.fsync(file.fileno())


def unfinished_file(target: Path) -> Path:
    """Return the path of the file in which the predictions for an output file are."""
    return target.with_name(f"{target.name}.unfinished")


@contextmanager
def exclusive_output(target: Path, resume: bool = True, overwrite: bool = False) -> Iterator[None]:
    """Lock an output file until the `with` block ends.

    Args:
        target: the output file.
        resume: whether to continue what an interrupted process gathered.
        overwrite: whether a finished file may be replaced.
    """
    if not target.parent.is_dir():
        raise UserError(f"output={target}: there is no folder {target.parent}")
    lock = target.with_name(f"{target.name}.lock")
    with process_lock(lock, f"another process is writing {target}; wait for it"):
        try:  # inside, so that a lock that a kill has left is removed
            goes_on = resume and unfinished_file(target).exists()
            if target.exists() and not overwrite and not goes_on:
                raise UserError(f"output={target} exists already; replace it with overwrite=true")
            with disk_advice(target.parent):
                yield
        finally:
            if not unfinished_file(target).exists():
                lock.unlink(missing_ok=True)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
