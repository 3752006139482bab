"""The blocks of a build: what each task does with its file of articles, or its part of the corpus.

Articles are datatrove documents, so that its filters can leave some out; examples are not, which
would cost several times as much. What a task writes depends on its rank alone and counts once
datatrove has marked the task as finished; until then the task does all of it again.

The folder `building/` holds, besides datatrove's marks in `tasks/` and `near/`:

- `metadata-i.ids`: of metadata file i, digests of the articles to take, uint64.
- `sources-i.arrow`, `sources-i.keys`, `sources-i.marks`: of source file i, the examples, a digest
  of 16 bytes of each, and whether each repeats another (bool).
- `shard-i-of-n.arrow`: a shard, until the manifest is written.
- `*.json`: what is being built (`begun`, `evaluated`, `jobs`), and what each task counted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.utils.word_tokenizers import WhitespaceTokenizer

from tartan.corpus.records import (
    BREAK,
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    record_of,
    text_of,
)
from tartan.corpus.settings import ExampleOptions, Options, listed
from tartan.corpus.sources import Source
from tartan.data.corpus import BEGUN, MANIFEST, Manifest, Shard
from tartan.data.overlap import NgramIndex
from tartan.data.table import until_full
from tartan.errors import UserError
from tartan.files import sha256_of, write_durably, write_text_durably

SCHEMA = pa.schema([("text", pa.string())])
ROWS, CHARACTERS = 10_000, 1 << 24
"""Numbers of examples and of their characters at which a record batch ends."""
DIGESTS = 1 << 22
"""Approximate number of digests that are compared at a time."""


class SpaceTokenizer(WhitespaceTokenizer):
    """Splits text at spaces; datatrove's own tokenizers need spaCy and take many times as long."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


@dataclass(frozen=True)
class Blocks:
    """The blocks of one build, methods that datatrove calls with documents, rank and world size."""

    building: Path
    options: Options
    sources: Sequence[Source]
    metadata: Sequence[Source]

    def choose_articles(self, data: object, rank: int, world: int) -> None:
        """Store digests of the identities of the articles that a metadata file says to take."""
        notes = {"records": _no_counts(), "fields": Counter[str]()}

        def identity(record: Record) -> str | None:
            return identity_of(record) if self._is_of_fields(record, notes["fields"]) else None

        taken = self._taken(self.metadata[rank], notes["records"], identity)
        digests = np.fromiter((_digest(one) for _, one in taken), np.uint64)
        _path(self.building, "metadata", rank, ".ids").write_bytes(digests.tobytes())
        write_json(_path(self.building, "metadata", rank), notes)

    def read_articles(self, data: object, rank: int, world: int) -> Iterator[Document]:
        """Yield a document for each article of the fields that has a text."""
        notes = {"records": _no_counts(), "fields": Counter[str]()}
        ids = [np.fromfile(file, np.uint64) for file in self.building.glob("metadata-*.ids")]
        chosen = np.unique(np.concatenate(ids)) if ids else None

        def text(record: Record) -> str | None:
            if chosen is None:
                return text_of(record) if self._is_of_fields(record, notes["fields"]) else None
            digest = np.uint64(_digest(identity_of(record)))
            place = np.searchsorted(chosen, digest)
            return text_of(record) if (chosen[place : place + 1] == digest).any() else None

        for place, article in self._taken(self.sources[rank], notes["records"], text):
            if article.strip():
                yield Document(article, place)
            else:
                notes["records"]["no_text"] += 1
        write_json(_path(self.building, "sources", rank), notes)

    def write_examples(self, data: Iterable[Document], rank: int, world: int) -> None:
        """Write the examples of articles, and their digests.

        White space in an example is single spaces, and no example is blank.
        """
        options, counts = self.options, Counter(articles=0, made=0, too_short=0, contaminated=0)
        texts, index = _examples(options.examples, data, counts), None
        if options.decontaminate is not None:
            index = NgramIndex(read_json(self.building / "evaluated.json"), options.decontaminate)

        def batches() -> Iterator[pa.RecordBatch]:
            while batch := list(until_full(texts, ROWS, CHARACTERS)):
                if index is not None:
                    marks = index.contaminates(batch)
                    counts["contaminated"] += int(marks.sum())
                    batch = [text for text, mark in zip(batch, marks, strict=True) if not mark]
                encoded = [text.encode() for text in batch]
                keys.writelines(hashlib.blake2b(text, digest_size=16).digest() for text in encoded)
                yield pa.record_batch({"text": encoded}, SCHEMA)

        part = _path(self.building, "sources", rank, ".arrow")
        with part.with_suffix(".keys").open("wb") as keys:
            _write_stream(part, batches())
        write_json(_path(self.building, "examples", rank), {"examples": counts})

    def write_repeats(self, data: object, rank: int, world: int) -> None:
        """Write which examples of each part repeat an earlier one, in the order of the sources."""
        files = sorted(self.building.glob("sources-*.keys"))
        keys: list[np.ndarray] = []
        for file in files:  # what is empty cannot be mapped
            flat = np.memmap(file, "<u8", "r") if file.stat().st_size else np.zeros(0, "<u8")
            keys.append(flat.reshape(-1, 2))
        unmarked = [np.zeros(len(part), bool) for part in keys]
        repeated = repeats_among(keys) if self.options.deduplicate else unmarked
        for file, marks in zip(files, repeated, strict=True):
            file.with_suffix(".marks").write_bytes(marks.tobytes())

    def kept_examples(self, data: object, rank: int, world: int) -> Iterator[Document]:
        """Yield the examples of a part that repeat no other, for MinHash."""
        for batch in _kept_batches(self.building, rank, near=False):
            yield from (Document(text, "") for text in batch.column("text").to_pylist())

    def write_shard(self, data: object, rank: int, world: int) -> None:
        """Write the kept examples of a part as a shard, which takes the part's place."""
        path = self.building / f"shard-{rank:05d}-of-{world:05d}.arrow"
        if not path.is_file():  # else a process was killed after it, and the part may be gone
            batches = _kept_batches(self.building, rank, near=True)
            write_durably(path, lambda scratch: _write_stream(scratch, batches))
        _path(self.building, "sources", rank, ".arrow").unlink(missing_ok=True)
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
            texts = stream.read_all()["text"]
            # single spaces are all the white space there is
            words = len(texts) + (pc.sum(pc.count_substring(texts, " ")).as_py() or 0)
        size, digest = path.stat().st_size, sha256_of(path)
        shard = Shard(file=path.name, bytes=size, sha256=digest, examples=len(texts), words=words)
        write_json(_path(self.building, "shards", rank), shard.model_dump())

    def write_manifest(self, data: object, rank: int, world: int) -> None:
        """Put the shards into the corpus' folder, and write the manifest, which finishes it."""
        building, output = self.building, self.building.parent
        shards = [Shard(**read_json(note)) for note in sorted(building.glob("shards-*.json"))]
        records, examples = _total(building, "sources", "records"), _total(building, "examples")
        records["kept"] = examples.pop("articles")
        left_out = records["other_field"] + records["no_text"] + records["bad"]
        records["filtered"] = records["read"] - records["kept"] - left_out
        marks = building.glob("sources-*.marks")
        examples["repeated"] = sum(int(np.fromfile(file, bool).sum()) for file in marks)
        examples["kept"] = sum(shard.examples for shard in shards)
        left_out = examples["too_short"] + examples["contaminated"] + examples["repeated"]
        examples["near_repeated"] = examples["made"] - examples["kept"] - left_out
        words = sum(shard.words for shard in shards)
        counts: dict[str, Any] = {"records": records, "examples": examples, "words": words}
        if chosen := _total(building, "metadata", "records"):
            counts["metadata"] = {"read": chosen["read"], "bad": chosen["bad"]}
        fields = _total(building, "sources", "fields") + _total(building, "metadata", "fields")
        if not examples["kept"]:
            (output / BEGUN).unlink()  # there is nothing to go on with
            raise UserError(f"no examples: {counts}; fields: {dict(fields.most_common(8))}")
        manifest = Manifest(
            **read_json(output / BEGUN),
            counts=counts,
            fields_of_study=dict(sorted(fields.items())),
            shards=shards,
        )
        for path in building.glob("shard-*.arrow"):
            path.replace(output / path.name)
        write_json(output / MANIFEST, manifest.model_dump())

    def _taken(
        self, source: Source, counts: Counter[str], take: Callable[[Record], str | None]
    ) -> Iterator[tuple[str, str]]:
        """Yield the place and `take(record)` of each record of a file that is not left out."""
        for place, line in source.lines():
            counts["read"] += 1
            try:
                taken = take(record_of(line))
            except BadRecordError as error:
                if self.options.bad_records == "refuse":
                    raise UserError(f"{place}: {error} (bad_records=skip leaves it out)") from error
                counts["bad"] += 1
                continue
            if taken is None:
                counts["other_field"] += 1
            else:
                yield place, taken

    def _is_of_fields(self, record: Record, counts: Counter[str]) -> bool:
        """Return whether a record names one of the fields of study, and count those it names."""
        wanted = {name.casefold() for name in listed(self.options.field_of_study)}
        if not wanted:
            return True
        fields = fields_of(record)
        # sorted, because a set's order is another in each process
        counts.update(sorted(fields) or ["none"])
        return not wanted.isdisjoint(map(str.casefold, fields))


def words_of_examples(text: str, options: ExampleOptions) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if options.by in ("paragraph", "line"):
        yield from map(str.split, text.split(BREAK if options.by == "paragraph" else "\n"))
        return
    words = text.split()
    size = options.words if options.by == "words" else max(len(words), 1)
    yield from (words[start : start + size] for start in range(0, len(words), size))


def repeats_among(keys: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return whether an earlier example has the same digest, bool `(examples,)` of each part.

    Among 10^9 different texts, two have the same digest of 128 bits with a probability below
    10^-20. The memory does not grow with the number of examples, but for a byte each.

    Args:
        keys: the digests of each part, uint64 `(examples, 2)`.
    """
    repeated = [np.zeros(len(part), dtype=bool) for part in keys]
    shares = max(1, -(-sum(map(len, keys)) // DIGESTS))
    for share in range(shares):
        rows = [np.flatnonzero(part[:, 0] % shares == share) for part in keys]
        digests = np.concatenate([part[some] for part, some in zip(keys, rows, strict=True)])
        marks = pd.DataFrame(digests).duplicated().to_numpy()
        ends = np.cumsum([len(some) for some in rows])[:-1]
        for part, some, marked in zip(repeated, rows, np.split(marks, ends), strict=True):
            part[some] = marked
    return repeated


def write_json(path: Path, content: Any) -> None:
    """Write plain data durably; equal data give equal bytes."""
    write_text_durably(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the data in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def _path(building: Path, kind: str, rank: int, suffix: str = ".json") -> Path:
    return building / f"{kind}-{rank:05d}{suffix}"


def _no_counts() -> Counter[str]:
    return Counter(other_field=0, no_text=0, bad=0, read=0)


def _total(building: Path, kind: str, key: str = "examples") -> Counter[str]:
    """Return the sums of the counts that the tasks' notes have under `key`."""
    counts = Counter[str]()
    for file in sorted(building.glob(f"{kind}-*.json")):
        counts.update(read_json(file)[key])
    return counts


def _digest(identity: str) -> int:
    """Return 64 bits of an identity; among 10^7 articles, one in 10^12 others has the same."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")


def _examples(
    options: ExampleOptions, articles: Iterable[Document], counts: Counter[str]
) -> Iterator[str]:
    for article in articles:
        counts["articles"] += 1
        for words in filter(None, words_of_examples(article.text, options)):
            counts["made"] += 1
            if len(words) < options.min_words:
                counts["too_short"] += 1
            else:
                yield " ".join(words)


def _kept_batches(building: Path, rank: int, *, near: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part without its repeats, nor if `near` what MinHash has listed."""
    part = _path(building, "sources", rank, ".arrow")
    kept = ~np.fromfile(part.with_suffix(".marks"), bool)
    listed_near = building / "near" / f"{rank:06d}.remove"
    if near and listed_near.is_file():
        kept[np.flatnonzero(kept)[np.fromfile(listed_near, "<u4")]] = False
    start = 0
    with pa.memory_map(str(part)) as mapped, pa.ipc.open_stream(mapped) as stream:
        for batch in stream:
            chosen = batch.filter(pa.array(kept[start : start + len(batch)]))
            start += len(batch)
            if len(chosen):
                yield chosen


def _write_stream(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches as an Arrow stream, which training memory-maps."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
        for batch in batches:
            stream.write_batch(batch)
