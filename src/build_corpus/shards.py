"""From parts to the corpus: datatrove blocks that leave out repeats and write what is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.word_tokenizers import WordTokenizer

from src.build_corpus.layout import SCHEMA, Building, read_json, write_json
from src.data.checksum import sha256_of
from src.data.corpus_manifest import LAYOUT, MANIFEST, Manifest, Shard
from src.run_folder.durable import remove, write_durably


class SpaceTokenizer(WordTokenizer):
    """Words between spaces: datatrove's own tokenizers take spaCy, and many times as long."""

    def __init__(self) -> None:
        super().__init__(None)

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    sent_tokenize = word_tokenize

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        raise NotImplementedError("no block used here asks for sentences")


class KeptExamples(PipelineStep):
    """Reads the examples of its rank's part that are no repeats, for blocks of datatrove."""

    type, name = "reader", "examples"

    def __init__(self, building: Building) -> None:
        super().__init__()
        self.building = building

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        dropped = np.fromfile(self.building.path("sources", rank, ".marks"), bool)
        for start, batch in _batches(self.building.path("sources", rank, ".arrow")):
            kept = batch.filter(pa.array(~dropped[start : start + len(batch)]))
            for text in kept.column("text").to_pylist():
                yield Document(text, "")


class Shards(PipelineStep):
    """Writes its rank's shard: an Arrow stream, which training memory-maps as it lies."""

    type, name = "writer", "shards"

    def __init__(self, building: Building, near: Path) -> None:
        """`near`: where datatrove left which of the kept examples nearly repeat another."""
        super().__init__()
        self.building, self.near = building, near

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        part = self.building.path("sources", rank, ".arrow")
        finished = self.building.path("shards", rank, ".json")
        marks = part.with_suffix(".marks")
        if not finished.is_file():
            path = self.building.output / f"shard-{rank:05d}-of-{world_size:05d}.arrow"
            dropped = np.fromfile(marks, bool)
            counts = {"repeated": int(dropped.sum()), "near": 0, "examples": 0, "words": 0}
            near = self.near / f"{rank:06d}.remove"
            if near.is_file():
                again = np.flatnonzero(~dropped)[np.fromfile(near, "<u4")]
                dropped[again], counts["near"] = True, len(again)
            write_durably(path, lambda scratch: _write(part, scratch, ~dropped, counts))
            checked = {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
            write_json(finished, checked | counts)
        for done in (part, marks, part.with_suffix(".keys")):
            remove(done)


class Finish(PipelineStep):
    """Writes the manifest, which makes a corpus of the shards."""

    type, name = "writer", "manifest"

    def __init__(self, building: Building) -> None:
        super().__init__()
        self.building = building

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        begun = read_json(self.building.folder / "begun.json")
        parts, metadata, shards = (
            [read_json(file) for file in sorted(self.building.folder.glob(f"{kind}-*.json"))]
            for kind in ("sources", "metadata", "shards")
        )
        examples = _sums(parts, "examples")
        examples |= {"repeated": sum(shard.pop("repeated") for shard in shards)}
        examples |= {"near_repeated": sum(shard.pop("near") for shard in shards)}
        kept = [Shard(**shard) for shard in shards]
        counts: dict[str, Any] = {
            "records": _sums(parts, "records"),
            "examples": examples | {"kept": sum(shard.examples for shard in kept)},
            "words": sum(shard.words for shard in kept),
        }
        if metadata:
            read = _sums(metadata, "records")
            counts["metadata"] = {"read": read["read"], "bad": read.get("bad", 0)}
        manifest = Manifest(
            layout=LAYOUT,
            settings=begun["settings"],
            sources=[_seen(part) for part in parts],
            metadata=[_seen(part) for part in metadata],
            counts=counts,
            fields_of_study=dict(sorted(_sums([*parts, *metadata], "fields").items())),
            shards=kept,
            versions=begun["versions"],
        )
        content = json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n"
        path = self.building.output / MANIFEST
        write_durably(path, lambda scratch: scratch.write_text(content, encoding="utf-8"))


def _write(part: Path, scratch: Path, kept: np.ndarray, counts: dict[str, int]) -> None:
    with pa.OSFile(str(scratch), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
        for start, batch in _batches(part):
            batch = batch.filter(pa.array(kept[start : start + len(batch)]))
            if len(batch):
                # single spaces are all the white space there is
                spaces = pc.sum(pc.count_substring(batch.column("text"), " ")).as_py()
                counts["examples"] += len(batch)
                counts["words"] += len(batch) + spaces
                stream.write_batch(batch)


def _batches(path: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    """`(first row, batch)` of a part."""
    start = 0
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        for batch in stream:
            yield start, batch
            start += len(batch)


def _sums(parts: list[dict[str, Any]], key: str) -> dict[str, int]:
    total = Counter[str]()
    for part in parts:
        total.update(part[key])
    return dict(total)


def _seen(part: dict[str, Any]) -> dict[str, Any]:
    """A source without its time, which a copy does not keep."""
    return {key: part["source"][key] for key in ("name", "size", "checksum")}
