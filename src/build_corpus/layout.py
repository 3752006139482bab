"""Where things lie in a corpus' folder while it is built, and how its text is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from src.run_folder.durable import write_durably

SCHEMA = pa.schema([("text", pa.string())])
ROWS = 10_000
"""Examples in a record batch, at most: a whole corpus has few batches, and a batch is soon read."""
BYTES = 1 << 24
"""Bytes of text after which a record batch ends, whatever its examples."""


class Building:
    """The folder `building/` in a corpus' folder: all of it is gone once the corpus is whole."""

    def __init__(self, output: Path) -> None:
        self.output, self.folder = output, output / "building"

    @property
    def begun(self) -> Path:
        """What is being built, written before anything else."""
        return self.folder / "begun.json"

    @property
    def chosen(self) -> Path:
        """Identities of the articles that metadata chose: sorted uint64."""
        return self.folder / "chosen.npy"

    @property
    def repeats(self) -> Path:
        """There once every part's `dropped` is: how many examples of each part are repeats."""
        return self.folder / "repeats.json"

    def metadata(self, index: int, suffix: str) -> Path:
        """A metadata file's identities (`.npy`) and, written last, what was counted (`.json`)."""
        return self.folder / f"metadata-{index:05d}{suffix}"

    def part(self, index: int, suffix: str) -> Path:
        """A shard's examples (`.arrow`) and, written last, what was counted (`.json`)."""
        return self.folder / f"part-{index:05d}{suffix}"

    def keys(self, index: int, run: int) -> Path:
        """Digests of some of a part's examples, sorted: uint64 `(3, examples)`; see `digests`."""
        return self.folder / f"part-{index:05d}.keys-{run:04d}.npy"

    def dropped(self, index: int) -> Path:
        """Which of a part's examples are repeats: bool `(examples,)`."""
        return self.folder / f"part-{index:05d}.dropped.npy"

    def finished(self, index: int) -> Path:
        """Written after a shard of the corpus: its name, size, checksum and counts."""
        return self.folder / f"shard-{index:05d}.json"

    def shard(self, index: int, of: int) -> Path:
        """A shard of the corpus: an Arrow stream, which is memory-mapped as it lies."""
        return self.output / f"shard-{index:05d}-of-{of:05d}.arrow"


def write_json(path: Path, content: Any) -> None:
    """Write plain data durably, the same bytes for the same data."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_durably(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """What `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))
