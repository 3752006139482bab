"""Keeps in the cache what took long to make; a file there is believed if its checksum agrees."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock

from src.files.checksum import is_whole, sidecar_of
from src.files.durable import write_with_checksum

log = logging.getLogger(__name__)


def cached_file(
    path: Path, write: Callable[[Path], object], again: str, beside: Path | None = None
) -> Path:
    """Return `path`, after letting `write` fill it where it is not what was written there before.

    Of several processes that ask at the same time one writes, to a temporary name first, and the
    others wait for it. A file that differs from its checksum is made again, with a warning.

    Args:
        path: the file.
        write: fills the file whose path it is given.
        again: what is done again for a damaged file, for the warning.
        beside: another file, which `write` makes with its checksum; None where there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not (is_whole(path) and (beside is None or is_whole(beside))):
            if path.is_file() and sidecar_of(path).is_file():
                log.warning("%s is not what was written there; %s again", path, again)
            write_with_checksum(path, write)
    return path


def cached_indices(folder: Path, key: str, find: Callable[[], np.ndarray]) -> np.ndarray:
    """Return what `find` returns, from `folder` where it was stored under `key` before."""

    def write(path: Path) -> None:
        with path.open("wb") as file:  # numpy would append its ending to a path
            np.save(file, find())

    indices: np.ndarray = np.load(cached_file(folder / f"{key}.npy", write, "it is looked for"))
    return indices
