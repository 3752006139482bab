"""datatrove blocks that write the shards of a corpus, without repeats, and its manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.word_tokenizers import WordTokenizer

from src.build_corpus.layout import BEGUN, SCHEMA, Building, read_json, sums_of
from src.data.corpus_manifest import MANIFEST, Manifest, Shard
from src.files.checksum import sha256_of
from src.files.durable import remove, write_durably


class SpaceTokenizer(WordTokenizer):
    """Splits text at spaces; datatrove's own tokenizers need spaCy and take many times as long."""

    def __init__(self) -> None:
        super().__init__(None)

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    sent_tokenize = word_tokenize

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        raise NotImplementedError("no block used here asks for sentences")


class KeptExamples(PipelineStep):
    """Reads the examples of its rank's part that are not repeats, as datatrove documents."""

    type, name = "reader", "examples"

    def __init__(self, building: Building) -> None:
        super().__init__()
        self.building = building

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        part = self.building.path("sources", rank, ".arrow")
        for batch in _kept(part, ~np.fromfile(part.with_suffix(".marks"), bool)):
            for text in batch.column("text").to_pylist():
                yield Document(text, "")


class Shards(PipelineStep):
    """Writes its rank's shard: an Arrow stream, which training memory-maps.

    Args:
        building: the folder of the unfinished corpus.
        near: the folder in which datatrove listed the near-duplicates among the kept examples.
    """

    type, name = "writer", "shards"

    def __init__(self, building: Building, near: Path) -> None:
        super().__init__()
        self.building, self.near = building, near

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        building, part = self.building, self.building.path("sources", rank, ".arrow")
        if building.path("shards", rank, ".json").is_file():
            return
        path = building.output / f"shard-{rank:05d}-of-{world_size:05d}.arrow"
        dropped = np.fromfile(part.with_suffix(".marks"), bool)
        counts = {"repeated": int(dropped.sum()), "near": 0, "examples": 0, "words": 0}
        near = self.near / f"{rank:06d}.remove"
        if near.is_file():
            again = np.flatnonzero(~dropped)[np.fromfile(near, "<u4")]
            dropped[again], counts["near"] = True, len(again)

        def write(scratch: Path) -> None:
            with pa.OSFile(str(scratch), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
                for batch in _kept(part, ~dropped):
                    # single spaces are all the white space there is
                    spaces = pc.sum(pc.count_substring(batch.column("text"), " ")).as_py()
                    counts["examples"] += len(batch)
                    counts["words"] += len(batch) + spaces
                    stream.write_batch(batch)

        write_durably(path, write)
        written = {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
        building.note("shards", rank, written | counts)
        remove(part)


class Finish(PipelineStep):
    """Writes the manifest, with which the corpus is finished."""

    type, name = "writer", "manifest"

    def __init__(self, building: Building) -> None:
        super().__init__()
        self.building = building

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        begun = read_json(self.building.folder / BEGUN)
        parts, metadata, shards = map(self.building.noted, ("sources", "metadata", "shards"))
        examples = sums_of(parts, "examples")
        examples["repeated"] = sum(shard.pop("repeated") for shard in shards)
        examples["near_repeated"] = sum(shard.pop("near") for shard in shards)
        examples["kept"] = sum(shard["examples"] for shard in shards)
        words = sum(shard["words"] for shard in shards)
        counts = {"records": sums_of(parts, "records"), "examples": examples, "words": words}
        if metadata:
            read = sums_of(metadata, "records")
            counts["metadata"] = {"read": read["read"], "bad": read.get("bad", 0)}
        fields = sums_of([*parts, *metadata], "fields")
        manifest = Manifest(
            **begun,
            counts=counts,
            fields_of_study=dict(sorted(fields.items())),
            shards=[Shard(**shard) for shard in shards],
        )
        content = json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n"
        path = self.building.output / MANIFEST
        write_durably(path, lambda scratch: scratch.write_text(content, encoding="utf-8"))


def _kept(part: Path, kept: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part with only the rows that are kept; none is empty."""
    start = 0
    with pa.memory_map(str(part)) as mapped, pa.ipc.open_stream(mapped) as stream:
        for batch in stream:
            own = batch.filter(pa.array(kept[start : start + len(batch)]))
            start += len(batch)
            if len(own):
                yield own
