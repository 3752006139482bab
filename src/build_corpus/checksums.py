"""Checksums of what lies in a corpus' folder while it is built: nothing damaged goes into it."""

from __future__ import annotations

from pathlib import Path

from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building, read_json, write_json
from src.errors import UserError
from src.files.checksum import is_whole, sha256_of
from src.files.durable import remove


class NoteChecksums(PipelineStep):
    """Notes the checksums of the files that a block of datatrove writes for its rank.

    They are not beside the files, which datatrove would read too.

    Args:
        building: where they are.
        files: a pattern of the files' names below `building/near`, with `{rank}` in it.
        kind: of the files; begins the note's name.
        forget: remove the note instead: at the beginning of a pipeline, whose rank may have been
            killed between noting them and being done.
    """

    type, name = "writer", "checksums"

    def __init__(self, building: Building, kind: str, files: str, forget: bool = False) -> None:
        super().__init__()
        self.building, self.kind, self.files, self.forget = building, kind, files, forget

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        note = self.building.path(f"near-{self.kind}", rank, ".json")
        if self.forget:
            remove(note)
            return
        paths = sorted((self.building.folder / "near").glob(self.files.format(rank=rank)))
        folder = self.building.folder
        write_json(note, {str(path.relative_to(folder)): sha256_of(path) for path in paths})


def check_building(building: Building) -> None:
    """Compare what earlier processes left with its checksums, which reads all of it.

    A file without one belongs to a task that is not done, and is written again.

    Raises:
        UserError: a file is damaged.
    """
    for sidecar in sorted(building.folder.glob("*.sha256")):
        if not is_whole(sidecar.with_suffix("")):
            raise _damaged(sidecar.with_suffix(""), building)
    digests = {
        building.folder / name: digest
        for note in sorted(building.folder.glob("near-*.json"))
        for name, digest in read_json(note).items()
    }
    for done in sorted(building.folder.glob("shards-*.json")):
        shard = read_json(done)
        digests[building.output / shard["file"]] = shard["sha256"]
    for path, digest in digests.items():
        if not path.is_file() or sha256_of(path) != digest:
            raise _damaged(path, building)


def _damaged(path: Path, building: Building) -> UserError:
    return UserError(
        f"{path} is not what was written there (its checksum differs); remove {building.output}, "
        "and the same command builds it anew"
    )
