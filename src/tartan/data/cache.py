"""Keeps what took long to make in a folder that concurrent runs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock

from tartan.files import write_durably


def cached_file(path: Path, write: Callable[[Path], object]) -> Path:
    """Return `path`, after letting `write` fill it if it is not there.

    Of several processes that ask at the same time one writes, to a temporary name first, and the
    others wait for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.is_file():
            write_durably(path, write)
    return path


def cached_indices(folder: Path, key: str, find: Callable[[], np.ndarray]) -> np.ndarray:
    """Return what `find` returns, from `folder` where it was stored under `key` before."""

    def write(path: Path) -> None:
        with path.open("wb") as file:  # numpy would append its ending to a path
            np.save(file, find())

    indices: np.ndarray = np.load(cached_file(folder / f"{key}.npy", write))
    return indices
