"""One part to one shard of the corpus: its examples without repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from src.build_corpus.layout import SCHEMA, Building, write_json
from src.build_corpus.part import remove_part
from src.data.checksum import sha256_of
from src.run_folder.durable import write_durably


@dataclass(frozen=True)
class ShardTask:
    """A part to finish, of `shards` in all."""

    building: Building
    index: int
    shards: int
    deduplicate: bool


def write_shard(task: ShardTask, pulse: Callable[[], None]) -> list[str]:
    """Write the shard, then what it holds, then remove the part."""
    building, index = task.building, task.index
    path = building.shard(index, task.shards)
    counts = {"examples": 0, "words": 0}

    def write(scratch: Path) -> None:
        dropped = np.load(building.dropped(index), mmap_mode="r") if task.deduplicate else None
        row = 0
        with (
            pa.memory_map(str(building.part(index, ".arrow"))) as mapped,
            pa.OSFile(str(scratch), "wb") as file,
            pa.ipc.open_stream(mapped) as parts,
            pa.ipc.new_stream(file, SCHEMA) as stream,
        ):
            for batch in parts:
                pulse()
                if dropped is not None:
                    kept = ~dropped[row : row + len(batch)]
                    row += len(batch)
                    batch = batch.filter(pa.array(kept))
                if not len(batch):
                    continue
                # single spaces are all the white space there is
                spaces = pc.sum(pc.count_substring(batch.column("text"), " ")).as_py()
                counts["examples"] += len(batch)
                counts["words"] += len(batch) + spaces
                stream.write_batch(batch)

    write_durably(path, write)
    checked = {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
    write_json(building.finished(index), checked | counts)
    remove_part(building, index)
    return []
