"""The folder of an unfinished corpus: what its tasks leave, and the checksums of all of it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from src.errors import UserError
from src.files.checksum import is_whole, sha256_of, sidecar_of
from src.files.durable import write_with_checksum

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

    It holds these files, each with its checksum beside it:

    - `begun.json`: what is being built.
    - `evaluated.json`: the dev and test texts that must not be in the corpus.
    - `metadata-i.ids`: of metadata file i, digests of the articles to take, uint64.
    - `sources-i.arrow`, `sources-i.keys`, `sources-i.marks`: of source file i, the examples, a
      digest of 16 bytes of each, and whether each repeats another (bool).
    - `STEP-i.json`: the note of a step's finished task, written last: what it counted, and the
      checksums of files that have none beside them.
    - `near/`: what datatrove's MinHash writes.
    - `logs/`: its executors' logs and markers of finished tasks, which need no checksums.
    """

    output: Path

    @property
    def folder(self) -> Path:
        return self.output / "building"

    def path(self, step: str, rank: int, suffix: str) -> Path:
        return self.folder / f"{step}-{rank:05d}{suffix}"

    def note(self, step: str, rank: int, files: Iterable[Path] = (), **counted: Any) -> None:
        """Write the note of a finished task, with the checksums of `files`."""
        digests = {str(file.relative_to(self.output)): sha256_of(file) for file in sorted(files)}
        write_json(self.path(step, rank, ".json"), {"files": digests, **counted})

    def noted(self, step: str) -> list[dict[str, Any]]:
        """Return the notes of a step's finished tasks."""
        return [read_json(file) for file in sorted(self.folder.glob(f"{step}-*.json"))]

    def check(self) -> None:
        """Compare all files that earlier processes left with their checksums.

        A file without a checksum belongs to an unfinished task, which will write it again.

        Raises:
            UserError: a file is damaged.
        """
        for sidecar in sorted(self.folder.glob("*.sha256")):
            file = sidecar.with_suffix("")
            damaged = [] if is_whole(file) else [file]
            if not damaged and file.match("*-*.json"):
                noted = {self.output / name: d for name, d in read_json(file)["files"].items()}
                damaged = [f for f, d in noted.items() if not f.is_file() or sha256_of(f) != d]
            if damaged:
                raise UserError(
                    f"{damaged[0]} is not what was written there (its checksum differs); remove "
                    f"{self.output}, and the same command builds it anew"
                )

    def remove(self) -> None:
        """Remove the folder; after an interruption, its remains do not count."""
        (self.folder / BEGUN).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def sums_of(notes: Iterable[dict[str, Any]], key: str) -> dict[str, int]:
    """Return the sums of the counts under `key` over all notes."""
    total = Counter[str]()
    for note in notes:
        total.update(note[key])
    return dict(total)


def shown(counts: dict[str, int]) -> str:
    """Return counts in words: `1,234 too short, 5 bad`."""
    return ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in counts.items())


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
