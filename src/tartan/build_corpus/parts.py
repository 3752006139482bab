"""Writes parts, which are Arrow files of examples with digests of these, and reads them.

Examples are no datatrove documents: that would cost several times as much.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from datatrove.data import Document
from datatrove.utils.text import TextNormConfig, simplify_text

from tartan.build_corpus.building import Building, read_json
from tartan.build_corpus.records import BREAK
from tartan.build_corpus.settings import ExampleOptions, Options
from tartan.data.overlap import NgramIndex
from tartan.data.table.base import until_full

_ASCII = TextNormConfig(norm_whitespace=False, norm_unicode_diacritics=False)
"""Normalisation that ASCII text still needs; its words are split at white space anyway."""
_ANY = TextNormConfig(norm_whitespace=False)
SCHEMA = pa.schema([("text", pa.string())])
ROWS = 10_000
"""Maximum number of examples in a record batch."""
BYTES = 1 << 24
"""Size of the texts at which a record batch ends [bytes]."""


def write_part(
    building: Building, options: Options, data: Iterable[Document], rank: int, world_size: int
) -> None:
    """Write the examples of articles, and their digests.

    White space in an example is single spaces, and no example is blank.
    """
    counts = Counter(articles=0, made=0, too_short=0, contaminated=0)
    part = building.path("sources", rank, ".arrow")
    with part.with_suffix(".keys").open("wb") as keys:
        write_stream(part, _batches(_examples(building, options, data, counts), keys))
    building.note("examples", rank, {"examples": counts})


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


def write_stream(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches as an Arrow stream, which training memory-maps."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
        for batch in batches:
            stream.write_batch(batch)


def words_of_examples(text: str, options: ExampleOptions) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if options.by in ("paragraph", "line"):
        yield from map(str.split, text.split(BREAK if options.by == "paragraph" else "\n"))
        return
    words = text.split()
    size = options.words if options.by == "words" else max(len(words), 1)
    yield from (words[start : start + size] for start in range(0, len(words), size))


def normalised_words(text: str) -> list[str]:
    """Return the words of a text in datatrove's normalisation."""
    words: list[str] = simplify_text(text, _ASCII if text.isascii() else _ANY).split()
    return words


def _examples(
    building: Building, options: Options, articles: Iterable[Document], counts: Counter[str]
) -> Iterator[bytes]:
    index, ngram = None, options.decontaminate
    if ngram is not None:
        index = NgramIndex(read_json(building.folder / "evaluated.json"), ngram, normalised_words)
    for article in articles:
        counts["articles"] += 1
        for words in filter(None, words_of_examples(article.text, options.examples)):
            counts["made"] += 1
            text = " ".join(words)
            if len(words) < options.examples.min_words:
                counts["too_short"] += 1
            elif index is not None and index.contaminates([text])[0]:
                counts["contaminated"] += 1
            else:
                yield text.encode("utf-8")


def _batches(texts: Iterator[bytes], keys: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Yield batches of texts, and write their digests to `keys`."""
    while batch := list(until_full(texts, ROWS, BYTES)):
        keys.writelines(hashlib.blake2b(text, digest_size=16).digest() for text in batch)
        yield pa.record_batch({"text": batch}, SCHEMA)
