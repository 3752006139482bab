"""What `python -m src.build_corpus` leaves beside a corpus' shards: counts, checksums, origin."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from src.errors import UserError, first_line
from src.files.checksum import sha256_of
from src.files.plain import violation

MANIFEST = "manifest.json"
_BEGUN = Path("building", "begun.json")
LAYOUT = 1
"""Raised when the meaning of a corpus' folder changes."""


class Shard(BaseModel):
    """A file of the corpus: an Arrow stream with the column `text`, none of them blank.

    Attributes:
        file: its name in the folder.
        bytes: of the file.
        sha256: of the file.
        examples: rows.
        words: of all rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Annotated[str, Field(pattern=r"^[^/\\\x00]+\.arrow$")]
    bytes: int
    sha256: str
    examples: int
    words: int


class Manifest(BaseModel):
    """What a corpus' folder holds and how it was made.

    Attributes:
        settings: what decided the examples, as in `conf/build_corpus.yaml`.
        sources: name, size and checksum of each shard that was read, in order.
        metadata: the same for files that only said of which field an article is.
        counts: of `records` and `examples`, read, kept, and left out by reason; `words` kept.
        fields_of_study: records that named each field, as far as fields were looked at.
        shards: the corpus, in order.
        versions: of what built it.
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
        """Changes when an example changes; the same wherever the folder lies."""
        joined = "".join(shard.sha256 for shard in self.shards)
        return hashlib.sha256(joined.encode()).hexdigest()


@dataclass(frozen=True)
class CorpusFolder:
    """A finished corpus' folder."""

    path: Path
    manifest: Manifest

    def files(self) -> list[Path]:
        """Files that hold examples, in order.

        Raises:
            UserError: one is missing, or not as long as it was.
        """
        for shard in self.manifest.shards:
            path = self.path / shard.file
            if not path.is_file() or path.stat().st_size != shard.bytes:
                raise UserError(
                    f"corpus {self.path}: {shard.file} is missing or cut; copy the folder again, "
                    "or remove it and build it again"
                )
        return [self.path / shard.file for shard in self.manifest.shards if shard.examples]

    def check(self) -> None:
        """Compare every file with its checksum, which reads all of them.

        Raises:
            UserError: one differs.
        """
        self.files()
        for shard in self.manifest.shards:
            if sha256_of(self.path / shard.file) != shard.sha256:
                raise UserError(
                    f"corpus {self.path}: {shard.file} is not what was written; copy the folder "
                    "again, or remove it and build it again"
                )


def is_corpus_folder(path: Path) -> bool:
    """Return whether `src.build_corpus` wrote the folder, or began to."""
    if (path / _BEGUN).is_file():
        return True
    return (path / MANIFEST).is_file() and any(path.glob("*.arrow"))


def read_corpus_folder(path: Path) -> CorpusFolder:
    """The corpus in a folder.

    Raises:
        UserError: it is not finished, no corpus' folder, or its manifest is damaged.
    """
    file = path / MANIFEST
    if not file.is_file():
        if (path / _BEGUN).is_file():
            raise UserError(f"corpus {path} is not finished; run the command that builds it again")
        raise UserError(
            f"corpus {path} is a folder; name a file in it, or a folder that "
            "python -m src.build_corpus wrote"
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("layout") != LAYOUT:
            raise UserError(
                f"{file} is of layout {content.get('layout')}, this program reads {LAYOUT}; "
                "build the corpus again"
            )
        manifest = Manifest.model_validate(content, strict=True)
    except ValidationError as error:
        raise UserError(f"{file} is damaged: {violation(error)}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is damaged: {first_line(error)}") from error
    return CorpusFolder(path, manifest)
