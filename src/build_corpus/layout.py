"""Where things lie in a corpus' folder while it is built, and how its text is stored."""

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
"""What is being built; the folder counts with it."""


@dataclass(frozen=True)
class Building:
    """The folder `building/` in a corpus' folder: all of it is gone once the corpus is whole.

    `begun.json` says what is being built, `evaluated.json` holds the texts that must not be in it.
    Of file number i there are `metadata-i.ids` (digests of the articles that it chooses, uint64),
    or a part: `sources-i.arrow` (examples), `sources-i.keys` (a digest of 16 bytes of each) and
    `sources-i.marks` (bool: which are repeats). `sources-i.json` and the like are written last, and
    count what is there; so does `shards-i.json` of a finished shard. Each file has its checksum
    beside it.
    """

    output: Path

    @property
    def folder(self) -> Path:
        return self.output / "building"

    def path(self, kind: str, index: int, suffix: str) -> Path:
        return self.folder / f"{kind}-{index:05d}{suffix}"

    def note(self, kind: str, index: int, counted: Any) -> None:
        """Write what is counted of a file, last of all that is written of it."""
        write_json(self.path(kind, index, ".json"), counted)

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """Return what is counted of each file."""
        return [read_json(file) for file in sorted(self.folder.glob(f"{kind}-*.json"))]

    def remove(self) -> None:
        """Remove the folder; what is left of it if that is interrupted does not count."""
        (self.folder / BEGUN).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def sums_of(parts: Iterable[dict[str, Any]], key: str) -> dict[str, int]:
    """The sums of the counts that are under `key` in each part."""
    total = Counter[str]()
    for part in parts:
        total.update(part[key])
    return dict(total)


def write_json(path: Path, content: Any) -> None:
    """Write plain data durably, the same bytes for the same data, with a checksum beside it.

    What is exchanged has none meanwhile, so that it is not taken for damaged.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    sidecar_of(path).unlink(missing_ok=True)
    write_with_checksum(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Return what `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))
