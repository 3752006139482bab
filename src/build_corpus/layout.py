"""Defines the files of an unfinished corpus, and how they are written."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from src.files.checksum import sidecar_of
from src.files.durable import write_with_checksum

SCHEMA = pa.schema([("text", pa.string())])
BEGUN = "begun.json"
"""File that records what is being built; without it, the folder does not count."""


@dataclass(frozen=True)
class Building:
    """The folder `building/` in a corpus folder, which is removed when the corpus is finished.

    It holds these files, each with its checksum beside it:

    - `begun.json`: what is being built.
    - `evaluated.json`: the dev and test texts that must not be in the corpus.
    - `metadata-i.ids`: of metadata file i, digests of the articles to take, uint64.
    - `sources-i.arrow`, `sources-i.keys`, `sources-i.marks`: of source file i, the examples, a
      digest of 16 bytes of each, and whether each repeats another (bool).
    - `metadata-i.json`, `sources-i.json`, `shards-i.json`: counts of a finished file, written last.
    """

    output: Path

    @property
    def folder(self) -> Path:
        return self.output / "building"

    def path(self, kind: str, index: int, suffix: str) -> Path:
        return self.folder / f"{kind}-{index:05d}{suffix}"

    def note(self, kind: str, index: int, counted: Any) -> None:
        """Write the counts of a file; they are written last and mark it as finished."""
        write_json(self.path(kind, index, ".json"), counted)

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """Return the counts of each finished file of a kind."""
        return [read_json(file) for file in sorted(self.folder.glob(f"{kind}-*.json"))]

    def remove(self) -> None:
        """Remove the folder; after an interruption, its remains do not count."""
        (self.folder / BEGUN).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def sums_of(parts: Iterable[dict[str, Any]], key: str) -> dict[str, int]:
    """Return the sums of the counts under `key` over all parts."""
    total = Counter[str]()
    for part in parts:
        total.update(part[key])
    return dict(total)


def write_json(path: Path, content: Any) -> None:
    """Write plain data durably, with a checksum beside it; equal data give equal bytes.

    The checksum is removed before the file is replaced, so that the new file is not taken for a
    damaged one.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    sidecar_of(path).unlink(missing_ok=True)
    write_with_checksum(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Return the data in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
