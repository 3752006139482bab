"""Caches the indices of a corpus' texts that took long to find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock

from src.files.durable import write_durably


def cached_indices(folder: Path, key: str, find: Callable[[], np.ndarray]) -> np.ndarray:
    """Return what `find` returns, from `folder` where it was stored under `key` before.

    Of several processes that ask at the same time one computes, and the others wait for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{key}.npy"
    with FileLock(folder / f"{key}.lock"):
        if not file.is_file():
            found = find()
            write_durably(file, lambda path: _save(path, found))
        indices: np.ndarray = np.load(file)
        return indices


def _save(path: Path, indices: np.ndarray) -> None:
    with path.open("wb") as file:  # numpy would append its ending to a path
        np.save(file, indices)
