"""Loads files with `datasets` into a cache whose files are checked against their checksums."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from filelock import FileLock

from src.data.table.base import until_full
from src.files.checksum import sha256_of

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
    key = json.dumps([builder, options], sort_keys=True)
    load = partial(datasets.load_dataset, builder, **options)
    return _cached(cache_dir, key, lambda folder: load(cache_dir=str(folder)))


def cached_texts(cache_dir: Path, key: str, texts: Callable[[], Iterator[str]]) -> datasets.Dataset:
    """Return texts as rows of one column `text`, memory-mapped from `cache_dir`.

    Args:
        cache_dir: the folder of all caches; the texts are copied into it once for each `key`.
        key: a string that changes when the texts change.
        texts: yields the texts, in order.

    Raises:
        Exception: whatever `texts` raises.
    """

    def load(folder: Path) -> datasets.Dataset:
        path = folder / "texts.arrow"
        if not path.exists():
            folder.mkdir(exist_ok=True)
            schema = pa.schema([("text", pa.string())])
            rows = texts()
            with pa.ipc.new_stream(str(path), schema) as file:
                while part := list(until_full(rows, _PART_TEXTS, _PART_CHARACTERS)):
                    file.write(pa.record_batch([pa.array(part, pa.string())], schema=schema))
        return datasets.Dataset.from_file(str(path))

    return _cached(cache_dir, key, load)


def _cached(
    cache_dir: Path, key: str, load: Callable[[Path], datasets.Dataset]
) -> datasets.Dataset:
    """Return what `load` makes in the key's folder, or finds there if it is intact."""
    folder = cache_dir / "datasets" / hashlib.sha256(key.encode()).hexdigest()[:32]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if (folder / _DIGESTS).exists() and not _is_intact(folder):
            log.warning("%s is not what was written there; its source is read again", folder)
            (folder / _DIGESTS).unlink()
        if not (folder / _DIGESTS).exists():  # damaged, or never finished
            shutil.rmtree(folder, ignore_errors=True)
        rows = load(folder)
        known = _digests(folder)
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".arrow", ".json"))
        names = [str(path.relative_to(folder)) for path in files if path.name != _DIGESTS]
        if known.keys() != set(names):
            content = {name: known.get(name) or sha256_of(folder / name) for name in names}
            scratch = folder / f"{_DIGESTS}.part"
            scratch.write_text(json.dumps(content, indent=1), encoding="utf-8")
            scratch.replace(folder / _DIGESTS)
    return rows


def _is_intact(folder: Path) -> bool:
    digests = _digests(folder)
    paths = {name: folder / name for name in digests}
    whole = all(path.is_file() and sha256_of(path) == digests[n] for n, path in paths.items())
    return bool(digests) and whole


def _digests(folder: Path) -> dict[str, str]:
    """Return the stored checksums; none where their file is missing or damaged."""
    try:
        noted = json.loads((folder / _DIGESTS).read_bytes())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
