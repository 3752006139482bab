"""Stores and compares checksums of the files of an unfinished corpus."""

from __future__ import annotations

from pathlib import Path

from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building, read_json, write_json
from src.errors import UserError
from src.files.checksum import is_whole, sha256_of
from src.files.durable import remove


class NoteChecksums(PipelineStep):
    """Stores the checksums of the files that a datatrove block writes for its rank.

    They are stored in another folder, because datatrove would read files beside its own.

    Args:
        building: the folder of the unfinished corpus.
        kind: kind of the files, with which the checksums' file name begins.
        files: pattern of the files' names below `building/near`, with `{rank}` in it.
        forget: remove the stored checksums instead. A pipeline begins with this, because an earlier
            process may have been killed after storing them.
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
    """Compare all files that earlier processes left with their checksums.

    A file without a checksum belongs to an unfinished task, which will write it again.

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
