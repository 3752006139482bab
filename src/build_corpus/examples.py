"""A datatrove block that splits articles into examples and writes these as Arrow files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep

from src.build_corpus.articles import Articles
from src.build_corpus.layout import SCHEMA, read_json
from src.build_corpus.records import BREAK
from src.build_corpus.settings import Settings
from src.data.ngram_overlap import NgramIndex
from src.files.durable import write_with_checksum

ROWS = 10_000
"""Maximum number of examples in a record batch."""
BYTES = 1 << 24
"""Size of the texts at which a record batch ends [bytes]."""


def examples_of(text: str, settings: Settings) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if settings.by in ("paragraph", "line"):
        for part in text.split(BREAK if settings.by == "paragraph" else "\n"):
            yield part.split()
        return
    words = text.split()
    size = settings.words if settings.by == "words" else len(words)
    for start in range(0, len(words), size):
        yield words[start : start + size]


class Examples(PipelineStep):
    """Splits articles and writes their examples, with digests by which repeats are found later.

    Examples do not pass through datatrove as documents, which would cost several times as much.
    White space in an example is single spaces, and no example is blank.
    """

    type, name = "writer", "examples"

    def __init__(self, articles: Articles) -> None:
        super().__init__()
        self.articles, self.settings = articles, articles.settings
        self.counts: Counter[str] = Counter(made=0, too_short=0, contaminated=0)

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> None:
        articles, building, keys = self.articles, self.articles.building, bytearray()
        path = building.path("sources", rank, ".arrow")
        write_with_checksum(path, lambda scratch: self._write(scratch, data, keys))
        write_with_checksum(path.with_suffix(".keys"), lambda scratch: scratch.write_bytes(keys))
        read, kept = articles.records["read"], self.counts.pop("articles", 0)
        records = {name: articles.records[name] for name in ("other_field", "no_text", "bad")}
        records |= {"filtered": read - kept - sum(records.values()), "read": read, "kept": kept}
        counted = {"records": records, "examples": self.counts}
        building.note("sources", rank, counted | {"fields": articles.fields, "told": articles.told})

    def _write(self, path: Path, documents: Iterable[Document], keys: bytearray) -> None:
        texts: list[bytes] = []
        size = 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
            for text in self._texts(documents):
                texts.append(text)
                size += len(text)
                keys += hashlib.blake2b(text, digest_size=16).digest()
                if len(texts) == ROWS or size >= BYTES:
                    stream.write_batch(_batch(texts))
                    texts, size = [], 0
            if texts:
                stream.write_batch(_batch(texts))

    def _texts(self, documents: Iterable[Document]) -> Iterator[bytes]:
        counts, ngram, index = self.counts, self.settings.decontaminate, None
        if ngram is not None:
            index = NgramIndex(read_json(self.articles.building.folder / "evaluated.json"), ngram)
        for document in documents:
            counts["articles"] += 1
            for words in filter(None, examples_of(document.text, self.settings)):
                counts["made"] += 1
                text = " ".join(words)
                if len(words) < self.settings.min_words:
                    counts["too_short"] += 1
                elif index is not None and index.overlaps(text):
                    counts["contaminated"] += 1
                else:
                    yield text.encode("utf-8")


def _batch(texts: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(texts, pa.binary()).cast(pa.string())], schema=SCHEMA)
