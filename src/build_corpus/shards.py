"""Writes the shards of a corpus, without repeats and near-duplicates, and its manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import WordTokenizer

from src.build_corpus.building import BEGUN, Block, Building, Step, read_json, sums_of
from src.build_corpus.parts import SCHEMA
from src.data.corpus_manifest import MANIFEST, Manifest, Shard
from src.files.checksum import is_whole
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


def near_duplicate_steps(building: Building, parts: int) -> Iterator[Step]:
    """Yield the steps of MinHash, which lists the near-duplicates among the kept examples."""
    near = building.folder / "near"
    signatures, pairs = str(near / "signatures"), str(near / "pairs")
    # not xxHash: its 4th version refuses what datatrove passes to it
    config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
    kept = partial(_kept_examples, building)
    signed = MinhashDedupSignature(signatures, config, SpaceTokenizer())
    paired = MinhashDedupBuckets(signatures, pairs, config=config)
    clustered = MinhashDedupCluster(pairs, str(near), config)
    for name, tasks, files, blocks in (
        ("signatures", parts, "signatures/bucket_*/{:05d}.minhash.sig", [kept, signed]),
        ("buckets", config.num_buckets, "pairs/{:05d}_*.dups", [paired]),
        ("clusters", 1, "*.remove", [clustered]),
    ):
        yield name, tasks, [partial(_noted, building, name, files, blocks)]


def kept_batches(building: Building, rank: int, near: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part without its repeats; none is empty.

    Args:
        building: the folder of the unfinished corpus.
        rank: the part's number.
        near: leave out what MinHash has found too.
    """
    part = building.path("sources", rank, ".arrow")
    kept = ~np.fromfile(part.with_suffix(".marks"), bool)
    listed = building.folder / "near" / f"{rank:06d}.remove"
    if near and listed.is_file():
        kept[np.flatnonzero(kept)[np.fromfile(listed, "<u4")]] = False
    start = 0
    with pa.memory_map(str(part)) as mapped, pa.ipc.open_stream(mapped) as stream:
        for batch in stream:
            own = batch.filter(pa.array(kept[start : start + len(batch)]))
            start += len(batch)
            if len(own):
                yield own


def _kept_examples(
    building: Building, data: object, rank: int, world_size: int
) -> Iterator[Document]:
    for batch in kept_batches(building, rank):
        yield from (Document(text, "") for text in batch.column("text").to_pylist())


def _noted(
    building: Building, step: str, files: str, blocks: list[Block], data: Any, rank: int, size: int
) -> None:
    """Run blocks of datatrove, and note the checksums of what they wrote in `near/`.

    They are not stored beside the files, where datatrove would read them too.
    """
    if is_whole(building.path(step, rank, ".json")):
        return  # a process was killed after it
    for block in blocks:
        data = block(data, rank, size)
    building.note(step, rank, (building.folder / "near").glob(files.format(rank)))


def write_shard(building: Building, data: object, rank: int, world_size: int) -> None:
    """Write the kept examples of a part as a shard: an Arrow stream, which training memory-maps."""
    if is_whole(building.path("shards", rank, ".json")):
        return  # a process was killed after it, and the part is gone
    path = building.output / f"shard-{rank:05d}-of-{world_size:05d}.arrow"
    counts = Counter(examples=0, words=0)

    def write(scratch: Path) -> None:
        with pa.OSFile(str(scratch), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
            for batch in kept_batches(building, rank, near=True):
                # single spaces are all the white space there is
                spaces = pc.sum(pc.count_substring(batch.column("text"), " ")).as_py()
                counts.update(examples=len(batch), words=len(batch) + spaces)
                stream.write_batch(batch)

    write_durably(path, write)
    building.note("shards", rank, [path], bytes=path.stat().st_size, **counts)
    remove(building.path("sources", rank, ".arrow"))


def write_manifest(
    building: Building, data: object = None, rank: int = 0, world_size: int = 1
) -> None:
    """Write the manifest, with which the corpus is finished."""
    parts, metadata, notes = map(building.noted, ("sources", "metadata", "shards"))
    shards = [
        Shard(file=name, sha256=digest, **note)
        for note in notes
        for name, digest in note.pop("files").items()
    ]
    examples, marks = sums_of(parts, "examples"), building.folder.glob("sources-*.marks")
    kept = sum(shard.examples for shard in shards)
    dropped = examples["made"] - examples["too_short"] - examples["contaminated"] - kept
    repeated = sum(int(np.fromfile(file, bool).sum()) for file in marks)
    examples |= {"repeated": repeated, "near_repeated": dropped - repeated, "kept": kept}
    words = sum(shard.words for shard in shards)
    counts = {"records": sums_of(parts, "records"), "examples": examples, "words": words}
    if metadata:
        read = sums_of(metadata, "records")
        counts["metadata"] = {"read": read["read"], "bad": read.get("bad", 0)}
    fields = dict(sorted(sums_of([*parts, *metadata], "fields").items()))
    begun = read_json(building.folder / BEGUN)
    manifest = Manifest(**begun, counts=counts, fields_of_study=fields, shards=shards)
    content = json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n"
    path = building.output / MANIFEST
    write_durably(path, lambda scratch: scratch.write_text(content, encoding="utf-8"))
