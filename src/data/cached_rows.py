"""Loads files with `datasets` into a cache whose files are checked against their checksums."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from filelock import FileLock

from src.data.cached_file import cached_file
from src.data.table.base import until_full
from src.files.checksum import sha256_of
from src.files.durable import write_text_durably

log = logging.getLogger(__name__)

_PART_TEXTS, _PART_CHARACTERS = 10_000, 1 << 24
"""Numbers of texts and of characters that are kept in memory before they are written."""
_DIGESTS = "digests.json"
"""File that lists the SHA-256 of each cached file, by its path in the folder."""


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
        is_intact = noted.is_file() and noted.read_bytes() == _digests(folder).encode()
        if not is_intact:  # damaged, or never finished
            if noted.is_file():
                log.warning("%s is not what was written there; its source is read again", folder)
            shutil.rmtree(folder, ignore_errors=True)
        rows = datasets.load_dataset(builder, cache_dir=str(folder), **options)
        if not is_intact or json.loads(noted.read_bytes()).keys() != set(_files(folder)):
            write_text_durably(noted, _digests(folder))  # of another revision on the Hub
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


def _files(folder: Path) -> list[str]:
    """Return the paths of all files that have checksums, in the folder and sorted."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in (".arrow", ".json"))
    return [str(path.relative_to(folder)) for path in found if path.name != _DIGESTS]


def _digests(folder: Path) -> str:
    return json.dumps({name: sha256_of(folder / name) for name in _files(folder)}, indent=1)
