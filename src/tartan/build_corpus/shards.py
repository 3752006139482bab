"""Writes the shards of a corpus, without repeats and near-duplicates, and its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.pipeline import dedup
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import WhitespaceTokenizer

from tartan.build_corpus.building import BEGUN, Building, Step, read_json, write_json
from tartan.build_corpus.parts import kept_batches, write_stream
from tartan.data.corpus_folder import MANIFEST, Manifest, Shard
from tartan.files import sha256_of, write_durably


class SpaceTokenizer(WhitespaceTokenizer):
    """Splits text at spaces; datatrove's own tokenizers need spaCy and take many times as long."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


def near_duplicate_steps(building: Building, parts: int) -> Iterator[Step]:
    """Yield the steps of MinHash, which lists the near-duplicates among the kept examples."""
    near = str(building.folder / "near")
    signatures, pairs = f"{near}/signatures", f"{near}/pairs"
    # not xxHash: its 4th version refuses what datatrove passes to it
    config = dedup.MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
    signed = dedup.MinhashDedupSignature(signatures, config, SpaceTokenizer())
    yield "signatures", parts, [partial(_kept_examples, building), signed]
    paired = dedup.MinhashDedupBuckets(signatures, pairs, config=config)
    yield "buckets", config.num_buckets, [paired]
    yield "clusters", 1, [dedup.MinhashDedupCluster(pairs, near, config)]


def _kept_examples(
    building: Building, data: object, rank: int, world_size: int
) -> Iterator[Document]:
    for batch in kept_batches(building, rank):
        yield from (Document(text, "") for text in batch.column("text").to_pylist())


def write_shard(building: Building, data: object, rank: int, world_size: int) -> None:
    """Write the kept examples of a part as a shard, which takes the part's place."""
    path = building.folder / f"shard-{rank:05d}-of-{world_size:05d}.arrow"
    if not path.is_file():  # else a process was killed after it, and the part may be gone
        batches = kept_batches(building, rank, near=True)
        write_durably(path, lambda scratch: write_stream(scratch, batches))
    building.path("sources", rank, ".arrow").unlink(missing_ok=True)
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        texts = stream.read_all()["text"]
        # single spaces are all the white space there is
        words = len(texts) + (pc.sum(pc.count_substring(texts, " ")).as_py() or 0)
    size, digest = path.stat().st_size, sha256_of(path)
    shard = Shard(file=path.name, bytes=size, sha256=digest, examples=len(texts), words=words)
    building.note("shards", rank, shard.model_dump())


def write_manifest(building: Building, data: object, rank: int, world_size: int) -> None:
    """Put the shards into the corpus' folder, and write the manifest, which finishes it."""
    for path in building.folder.glob("shard-*.arrow"):
        path.replace(building.output / path.name)
    shards = [Shard(**note) for note in building.noted("shards")]
    records, examples = building.total("sources", "records"), building.total("examples", "examples")
    records["kept"] = examples.pop("articles")
    left_out = records["other_field"] + records["no_text"] + records["bad"]
    records["filtered"] = records["read"] - records["kept"] - left_out
    marks = building.folder.glob("sources-*.marks")
    examples["repeated"] = sum(int(np.fromfile(file, bool).sum()) for file in marks)
    examples["kept"] = sum(shard.examples for shard in shards)
    left_out = examples["too_short"] + examples["contaminated"] + examples["repeated"]
    examples["near_repeated"] = examples["made"] - examples["kept"] - left_out
    words = sum(shard.words for shard in shards)
    counts = {"records": records, "examples": examples, "words": words}
    if chosen := building.total("metadata", "records"):
        counts["metadata"] = {"read": chosen["read"], "bad": chosen["bad"]}
    fields = building.total("sources", "fields") + building.total("metadata", "fields")
    manifest = Manifest(
        **read_json(building.folder / BEGUN),
        counts=counts,
        fields_of_study=dict(sorted(fields.items())),
        shards=shards,
    )
    write_json(building.output / MANIFEST, manifest.model_dump())
