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
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from datatrove.data import Document
from datatrove.utils.text import TextNormConfig, simplify_text
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
from tartan.data.corpus_folder import BEGUN, MANIFEST, Manifest, Shard
from tartan.data.overlap import NgramIndex
from tartan.data.table.base import until_full
from tartan.errors import UserError
from tartan.files import sha256_of, write_durably, write_text_durably

SCHEMA = pa.schema([("text", pa.string())])
ROWS, CHARACTERS = 10_000, 1 << 24
"""Numbers of examples and of their characters at which a record batch ends."""
DIGESTS = 1 << 22
"""Approximate number of digests that are compared at a time."""
_ASCII = TextNormConfig(norm_whitespace=False, norm_unicode_diacritics=False)
"""Normalisation that ASCII text still needs; its words are split at white space anyway."""
_ANY = TextNormConfig(norm_whitespace=False)


class SpaceTokenizer(WhitespaceTokenizer):
    """Splits text at spaces; datatrove's own tokenizers need spaCy and take many times as long."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


def choose_articles(
    building: Path, options: Options, files: Sequence[Source], data: object, rank: int, world: int
) -> None:
    """Store digests of the identities of the articles that a metadata file says to take."""
    counts, fields = _no_counts(), Counter[str]()
    records = _records(files[rank], options, counts, _of_fields(options, fields), identity_of)
    digests = np.fromiter((_digest(identity) for _, identity in records), np.uint64)
    _path(building, "metadata", rank, ".ids").write_bytes(digests.tobytes())
    write_json(_path(building, "metadata", rank), {"records": counts, "fields": fields})


def read_articles(
    building: Path, options: Options, files: Sequence[Source], data: object, rank: int, world: int
) -> Iterator[Document]:
    """Yield a document for each article of the fields that has a text."""
    counts, fields = _no_counts(), Counter[str]()
    is_wanted = _of_fields(options, fields)
    if options.metadata:
        chosen = [np.fromfile(file, np.uint64) for file in building.glob("metadata-*.ids")]
        is_wanted = _among(np.unique(np.concatenate(chosen)))
    for place, text in _records(files[rank], options, counts, is_wanted, text_of):
        if not text or text.isspace():
            counts["no_text"] += 1
        else:
            yield Document(text, place)
    write_json(_path(building, "sources", rank), {"records": counts, "fields": fields})


def write_examples(
    building: Path, options: Options, data: Iterable[Document], rank: int, world: int
) -> None:
    """Write the examples of articles, and their digests.

    White space in an example is single spaces, and no example is blank.
    """
    counts = Counter(articles=0, made=0, too_short=0, contaminated=0)
    texts = _examples(options.examples, data, counts)
    index = None
    if options.decontaminate is not None:
        evaluated = read_json(building / "evaluated.json")
        index = NgramIndex(evaluated, options.decontaminate, normalised_words)
    part = _path(building, "sources", rank, ".arrow")

    def batches() -> Iterator[pa.RecordBatch]:
        while batch := list(until_full(texts, ROWS, CHARACTERS)):
            if index is not None:
                marks = index.contaminates(batch)
                counts["contaminated"] += int(marks.sum())
                batch = [text for text, mark in zip(batch, marks, strict=True) if not mark]
            encoded = [text.encode() for text in batch]
            keys.writelines(hashlib.blake2b(text, digest_size=16).digest() for text in encoded)
            yield pa.record_batch({"text": encoded}, SCHEMA)

    with part.with_suffix(".keys").open("wb") as keys:
        _write_stream(part, batches())
    write_json(_path(building, "examples", rank), {"examples": counts})


def normalised_words(text: str) -> list[str]:
    """Return the words of a text in datatrove's normalisation, in which numbers do not count."""
    words: list[str] = simplify_text(text, _ASCII if text.isascii() else _ANY).split()
    return words


def words_of_examples(text: str, options: ExampleOptions) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if options.by in ("paragraph", "line"):
        yield from map(str.split, text.split(BREAK if options.by == "paragraph" else "\n"))
        return
    words = text.split()
    size = options.words if options.by == "words" else max(len(words), 1)
    yield from (words[start : start + size] for start in range(0, len(words), size))


def write_repeats(building: Path, deduplicate: bool, data: object, rank: int, world: int) -> None:
    """Write which examples of each part repeat an earlier one, in the order of the sources."""
    files = sorted(building.glob("sources-*.keys"))
    keys = [
        # what is empty cannot be mapped
        (np.memmap(file, "<u8", "r") if file.stat().st_size else np.zeros(0, "<u8")).reshape(-1, 2)
        for file in files
    ]
    repeated = repeats_among(keys) if deduplicate else [np.zeros(len(part), bool) for part in keys]
    for file, marks in zip(files, repeated, strict=True):
        file.with_suffix(".marks").write_bytes(marks.tobytes())


def repeats_among(keys: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return whether an earlier example has the same digest, bool `(examples,)` of each part.

    Digests are BLAKE2b with 128 bits: among 10^9 different texts, two have the same digest with a
    probability below 10^-20. The memory does not grow with the number of examples, but for a byte
    each.

    Args:
        keys: the digests of each part, uint64 `(examples, 2)`.
    """
    repeated = [np.zeros(len(part), dtype=bool) for part in keys]
    shares = max(1, -(-sum(map(len, keys)) // DIGESTS))
    for share in range(shares):
        rows = [np.flatnonzero(part[:, 0] % shares == share) for part in keys]
        digests = np.concatenate([part[own] for part, own in zip(keys, rows, strict=True)])
        marks = pd.DataFrame(digests).duplicated().to_numpy()
        ends = np.cumsum([len(own) for own in rows])[:-1]
        for part, own, found in zip(repeated, rows, np.split(marks, ends), strict=True):
            part[own] = found
    return repeated


def kept_examples(building: Path, data: object, rank: int, world: int) -> Iterator[Document]:
    """Yield the examples of a part that repeat no other, for MinHash."""
    for batch in _kept_batches(building, rank, near=False):
        yield from (Document(text, "") for text in batch.column("text").to_pylist())


def write_shard(building: Path, data: object, rank: int, world: int) -> None:
    """Write the kept examples of a part as a shard, which takes the part's place."""
    path = building / f"shard-{rank:05d}-of-{world:05d}.arrow"
    if not path.is_file():  # else a process was killed after it, and the part may be gone
        batches = _kept_batches(building, rank, near=True)
        write_durably(path, lambda scratch: _write_stream(scratch, batches))
    _path(building, "sources", rank, ".arrow").unlink(missing_ok=True)
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        texts = stream.read_all()["text"]
        # single spaces are all the white space there is
        words = len(texts) + (pc.sum(pc.count_substring(texts, " ")).as_py() or 0)
    size, digest = path.stat().st_size, sha256_of(path)
    shard = Shard(file=path.name, bytes=size, sha256=digest, examples=len(texts), words=words)
    write_json(_path(building, "shards", rank), shard.model_dump())


def write_manifest(building: Path, data: object, rank: int, world: int) -> None:
    """Put the shards into the corpus' folder, and write the manifest, which finishes it."""
    output = building.parent
    notes = sorted(building.glob("shards-*.json"))
    shards = [Shard(**read_json(note)) for note in notes]
    records, examples = total(building, "sources", "records"), total(building, "examples")
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
    if chosen := total(building, "metadata", "records"):
        counts["metadata"] = {"read": chosen["read"], "bad": chosen["bad"]}
    fields = total(building, "sources", "fields") + total(building, "metadata", "fields")
    if not examples["kept"]:
        (output / BEGUN).unlink()  # there is nothing to go on with
        raise UserError(f"no examples: {counts}; fields of study: {dict(fields.most_common(8))}")
    manifest = Manifest(
        **read_json(output / BEGUN),
        counts=counts,
        fields_of_study=dict(sorted(fields.items())),
        shards=shards,
    )
    for path in building.glob("shard-*.arrow"):
        path.replace(output / path.name)
    write_json(output / MANIFEST, manifest.model_dump())


def total(building: Path, kind: str, key: str = "examples") -> Counter[str]:
    """Return the sums of the counts that the tasks' notes have under `key`."""
    counts = Counter[str]()
    for file in sorted(building.glob(f"{kind}-*.json")):
        counts.update(read_json(file)[key])
    return counts


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


def _records(
    source: Source,
    options: Options,
    counts: Counter[str],
    is_wanted: Callable[[Record], bool],
    take: Callable[[Record], str],
) -> Iterator[tuple[str, str]]:
    """Yield the place and `take(record)` of each wanted record of a file, and count the others."""
    for place, line in source.lines():
        counts["read"] += 1
        try:
            record = record_of(line)
            taken = take(record) if is_wanted(record) else None
        except BadRecordError as error:
            if options.bad_records == "refuse":
                raise UserError(f"{place}: {error} (bad_records=skip leaves it out)") from error
            counts["bad"] += 1
            continue
        if taken is None:
            counts["other_field"] += 1
        else:
            yield place, taken


def _of_fields(options: Options, counts: Counter[str]) -> Callable[[Record], bool]:
    """Return whether a record names one of the fields of study, as a function that counts them."""
    wanted = {name.casefold() for name in listed(options.field_of_study)}

    def is_of_fields(record: Record) -> bool:
        fields = fields_of(record)
        # sorted, because a set's order is another in each process
        counts.update(sorted(fields) or ["none"])
        return not wanted.isdisjoint(map(str.casefold, fields))

    return is_of_fields if wanted else lambda record: True


def _among(chosen: np.ndarray) -> Callable[[Record], bool]:
    """Return whether a record's identity is among digests, sorted uint64 `(articles,)`."""

    def is_chosen(record: Record) -> bool:
        digest = np.uint64(_digest(identity_of(record)))
        place = np.searchsorted(chosen, digest)
        return bool((chosen[place : place + 1] == digest).any())

    return is_chosen


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
