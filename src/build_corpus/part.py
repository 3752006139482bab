"""One shard of articles to one part: its examples, and their digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pyarrow as pa

from src.build_corpus.digests import DigestWriter
from src.build_corpus.layout import BYTES, ROWS, SCHEMA, Building, write_json
from src.build_corpus.lines import Records
from src.build_corpus.metadata import ChosenArticles
from src.build_corpus.records import (
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    paragraphs_of,
)
from src.build_corpus.settings import Settings
from src.build_corpus.sources import Source
from src.build_corpus.splitting import examples_of
from src.run_folder.durable import write_durably


@dataclass(frozen=True)
class PartTask:
    """A shard to read.

    Attributes:
        joined: whether metadata says which articles to take, not the articles themselves.
    """

    building: Building
    settings: Settings
    index: int
    source: Source
    joined: bool


def read_part(task: PartTask, pulse: Callable[[], None]) -> list[str]:
    """Filter a shard's records by field, split them, and write the examples and their digests.

    Memory is that of some record batches and `RUN` digests, whatever the shard's size.

    Returns:
        What is to be told of bad records.

    Raises:
        UserError: see `Records`.
    """
    source = task.source.seen()
    reader = _Reader(task, source)
    path = task.building.part(task.index, ".arrow")
    write_durably(path, lambda scratch: reader.write(str(scratch), pulse))
    write_json(task.building.part(task.index, ".json"), reader.counted())
    return reader.records.told


class _Reader:
    def __init__(self, task: PartTask, source: Source) -> None:
        self._task, self._settings, self._source = task, task.settings, source
        self._wanted = {name.casefold() for name in task.settings.field_of_study}
        self._chosen = ChosenArticles(task.building) if task.joined else None
        self.records = Records(source, task.settings.bad_records)
        self._dropped: Counter[str] = Counter()
        self._examples: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()
        self._digests, self._runs = DigestWriter(), 0

    def counted(self) -> dict[str, object]:
        read, bad = self.records.counts["read"], self.records.counts["bad"]
        other, empty = self._dropped["other_field"], self._dropped["no_text"]
        return {
            "source": asdict(self._source),
            "records": {
                "read": read,
                "kept": read - bad - other - empty,
                "other_field": other,
                "no_text": empty,
                "bad": bad,
            },
            "examples": {
                "made": self._examples["made"],
                "too_short": self._examples["too_short"],
            },
            "fields_of_study": dict(sorted(self._fields.items())),
            "runs": self._runs,
        }

    def write(self, path: str, pulse: Callable[[], None]) -> None:
        texts: list[bytes] = []
        size = 0
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
            for number, record in self.records:
                pulse()
                try:
                    taken = self._take(record)
                except BadRecordError as error:
                    self.records.bad(number, error)
                    continue
                for text in taken:
                    texts.append(text)
                    size += len(text)
                    if self._settings.deduplicate and self._digests.add(text):
                        self._write_digests()
                    if len(texts) == ROWS or size >= BYTES:
                        stream.write_batch(_batch(texts))
                        texts, size = [], 0
            if texts:
                stream.write_batch(_batch(texts))
        if len(self._digests):
            self._write_digests()

    def _take(self, record: Record) -> list[bytes]:
        """The record's examples; counts them, and what is left out, once all of it is read."""
        if not self._is_wanted(record):
            self._dropped["other_field"] += 1
            return []
        texts, short, least = [], 0, self._settings.min_words
        for words in examples_of(paragraphs_of(record), self._settings):
            if len(words) < least:
                short += 1
                continue
            try:
                texts.append(" ".join(words).encode("utf-8"))
            except UnicodeEncodeError as error:
                raise BadRecordError("its text holds half of a surrogate pair") from error
        if not texts and not short:
            self._dropped["no_text"] += 1
        self._examples["made"] += len(texts) + short
        self._examples["too_short"] += short
        return texts

    def _is_wanted(self, record: Record) -> bool:
        if self._chosen is not None:
            return identity_of(record) in self._chosen
        if not self._wanted:
            return True
        found = fields_of(record)
        self._fields.update(found or {"none"})
        return any(name.casefold() in self._wanted for name in found)

    def _write_digests(self) -> None:
        self._digests.write(self._task.building.keys(self._task.index, self._runs))
        self._runs += 1


def _batch(texts: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(texts, pa.binary()).cast(pa.string())], schema=SCHEMA)


def remove_part(building: Building, index: int) -> None:
    """Make room once the part's shard is whole."""
    for path in (building.part(index, ".arrow"), building.dropped(index)):
        path.unlink(missing_ok=True)
