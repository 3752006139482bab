"""Reads and checks the manifest that `python -m src.build_corpus` writes into a corpus folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tartan.errors import UserError, first_line
from tartan.files import is_inside, sha256_of

MANIFEST = "manifest.json"
BEGUN = Path("building", "begun.json")
"""File that records what is being built, in the folder of a corpus that is not finished."""
LAYOUT = 1
"""Version of the corpus folder's format; raise it when the meaning of the folder changes."""


class Shard(BaseModel):
    """A file of the corpus: an Arrow stream with the column `text` and no blank texts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Annotated[str, Field(pattern=r"^[^/\\\x00]+\.arrow$")]
    bytes: int
    sha256: str
    examples: int
    words: int


class Manifest(BaseModel):
    """What a corpus folder holds and how it was made.

    Attributes:
        settings: the settings of `conf/build_corpus.yaml` that decide which examples there are.
        sources: name, size and checksum of each source file that was read, in order.
        metadata: the same for the files that only give the articles' fields of study.
        counts: numbers of `records` and `examples` that were read, kept, and left out for each
            reason; and of `words` kept.
        fields_of_study: number of records that name each field, where the field was read.
        shards: the corpus files, in order.
        versions: versions of the software that built the corpus.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    layout: int
    settings: dict[str, Any]
    sources: list[dict[str, Any]]
    metadata: list[dict[str, Any]]
    counts: dict[str, Any]
    fields_of_study: dict[str, int]
    shards: list[Shard]
    versions: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """Return a string that changes with the examples, but not when the folder is moved."""
        joined = "".join(shard.sha256 for shard in self.shards)
        return hashlib.sha256(joined.encode()).hexdigest()


def is_corpus_folder(path: Path) -> bool:
    """Return whether `src.build_corpus` wrote the folder, finished or not."""
    finished = (path / MANIFEST).is_file() and any(path.glob("*.arrow"))
    return finished or (path / BEGUN).is_file()


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a corpus folder, and compare the sizes of its files."""
    file = path / MANIFEST
    if not file.is_file():
        raise UserError(f"corpus {path} is not finished; run the command that builds it again")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        manifest = Manifest.model_validate(content, strict=True)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is damaged: {first_line(error)}") from error
    if manifest.layout != LAYOUT:
        raise UserError(f"{file} is of layout {manifest.layout}, this program reads {LAYOUT}")
    for shard in manifest.shards:
        if not is_inside(path / shard.file, path):
            raise UserError(f"corpus {path}: {shard.file} is a link to a file elsewhere")
        if not (path / shard.file).is_file() or (path / shard.file).stat().st_size != shard.bytes:
            raise UserError(f"corpus {path}: {shard.file} is missing or cut")
    return manifest


def check_shards(path: Path, manifest: Manifest) -> None:
    """Compare every file with its checksum, which reads all of them."""
    for shard in manifest.shards:
        if sha256_of(path / shard.file) != shard.sha256:
            raise UserError(f"corpus {path}: {shard.file} is not what was written")
