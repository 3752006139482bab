"""Keeps in the cache what took long to make; a file there is believed if its checksum agrees."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from filelock import FileLock

from tartan.data.table.base import until_full
from tartan.files import is_whole, sha256_of, sidecar_of, write_text_durably, write_with_checksum

log = logging.getLogger(__name__)

_PART_TEXTS, _PART_CHARACTERS = 10_000, 1 << 24
"""Numbers of texts and of characters that are kept in memory before they are written."""
_DIGESTS = "digests.json"
"""File that lists the SHA-256 of each cached file, by its path in the folder."""


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


def cached_rows(cache_dir: Path, builder: str, **options: Any) -> datasets.Dataset:
    """Load `datasets.load_dataset(builder, **options)`, memory-mapped from `cache_dir`.

    Each combination of builder and options has a folder of its own. Its files are compared with
    their checksums whenever they are opened, and made again where they differ: `datasets` itself
    would train on a damaged file.

    Raises:
        Exception: whatever `datasets` raises for files that it cannot read.
    """
    folder = _folder(cache_dir, json.dumps([builder, options], sort_keys=True))
    folder.parent.mkdir(parents=True, exist_ok=True)
    noted = folder / _DIGESTS
    with FileLock(folder.with_suffix(".lock")):
        known = _noted(noted)
        # not files beside those: of another revision on the Hub that was not read to its end
        is_intact = bool(known) and known == _digests(folder, list(known))
        if not is_intact:  # damaged, or never finished
            if noted.is_file():
                log.warning("%s is not what was written there; its source is read again", folder)
            shutil.rmtree(folder, ignore_errors=True)
        rows = datasets.load_dataset(builder, cache_dir=str(folder), **options)
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".arrow", ".json"))
        names = [str(path.relative_to(folder)) for path in files if path != noted]
        if not is_intact or known.keys() != set(names):
            write_text_durably(noted, json.dumps(_digests(folder, names), indent=1))
    return rows


def cached_texts(cache_dir: Path, key: str, texts: Callable[[], Iterator[str]]) -> datasets.Dataset:
    """Return texts as rows of one column `text`, memory-mapped from `cache_dir`.

    Args:
        cache_dir: the folder of all caches; the texts are copied into it once for each `key`.
        key: a string that changes when the texts change.
        texts: yields the texts, in order.

    Raises:
        Exception: whatever `texts` raises.
    """

    def write(path: Path) -> None:
        schema = pa.schema([("text", pa.string())])
        rows = texts()
        with pa.ipc.new_stream(str(path), schema) as file:
            while part := list(until_full(rows, _PART_TEXTS, _PART_CHARACTERS)):
                file.write(pa.record_batch([pa.array(part, pa.string())], schema=schema))

    path = _folder(cache_dir, key) / "texts.arrow"
    return datasets.Dataset.from_file(str(cached_file(path, write, "its source is read")))


def _folder(cache_dir: Path, key: str) -> Path:
    return cache_dir / "datasets" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _noted(digests: Path) -> dict[str, str]:
    """Return the stored checksums; none where their file is missing or damaged."""
    try:
        noted: dict[str, str] = json.loads(digests.read_bytes())
    except (OSError, ValueError):
        return {}
    return noted


def _digests(folder: Path, names: list[str]) -> dict[str, str]:
    """Return the checksums of those of the files that are there."""
    return {name: sha256_of(folder / name) for name in names if (folder / name).is_file()}
