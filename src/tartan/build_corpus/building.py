"""The folder of an unfinished corpus: what its tasks leave there."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tartan.files import write_text_durably

Block: TypeAlias = Callable[..., Any]
"""A block of datatrove; one of ours is a function of the documents that the block before it gives,
the task's rank and the number of tasks."""
Step: TypeAlias = tuple[str, int, list[Block]]
"""A step's name, its number of tasks, and the blocks that each task runs."""
BEGUN = "begun.json"
"""File that records what is being built; without it, the folder does not count."""


@dataclass(frozen=True)
class Building:
    """The folder `building/` in a corpus folder, which is removed when the corpus is finished.

    What a task writes counts once datatrove has marked the task as finished, in `tasks/`; until
    then the task does all of it again. It holds these files:

    - `begun.json`, `evaluated.json`, `jobs.json`: what is being built, the dev and test texts that
      must not be in the corpus, and the jobs that SLURM was given.
    - `metadata-i.ids`: of metadata file i, digests of the articles to take, uint64.
    - `sources-i.arrow`, `sources-i.keys`, `sources-i.marks`: of source file i, the examples, a
      digest of 16 bytes of each, and whether each repeats another (bool).
    - `near/`: what datatrove's MinHash writes.
    - `shard-i-of-n.arrow`: a shard, until the manifest is written.
    - `metadata-i.json`, `sources-i.json`, `examples-i.json`, `shards-i.json`: what was counted.
    """

    output: Path

    @property
    def folder(self) -> Path:
        return self.output / "building"

    def path(self, kind: str, rank: int, suffix: str) -> Path:
        return self.folder / f"{kind}-{rank:05d}{suffix}"

    def note(self, kind: str, rank: int, counted: Any) -> None:
        """Write what a task counted."""
        write_json(self.path(kind, rank, ".json"), counted)

    def noted(self, kind: str) -> list[Any]:
        """Return what the tasks counted, in their order."""
        return [read_json(file) for file in sorted(self.folder.glob(f"{kind}-*.json"))]

    def total(self, kind: str, key: str) -> Counter[str]:
        """Return the sums of the counts that the tasks' notes have under `key`."""
        total = Counter[str]()
        for note in self.noted(kind):
            total.update(note[key])
        return total

    def remove(self) -> None:
        """Remove the folder; after an interruption, its remains do not count."""
        (self.folder / BEGUN).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def flush(data: object, rank: int, world_size: int) -> None:
    """Flush the disks: what a task wrote is there before datatrove marks the task as finished."""
    os.sync()


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return counts in words: `1,234 too short, 5 bad`."""
    return ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in counts.items())


def write_json(path: Path, content: Any) -> None:
    """Write plain data durably; equal data give equal bytes."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_text_durably(path, text)


def read_json(path: Path) -> Any:
    """Return the data in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
