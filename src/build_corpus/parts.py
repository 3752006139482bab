"""Turns files of articles into parts: Arrow files of examples, and digests of these.

Articles are datatrove documents, so that its filters can leave some out. Examples are not: that
would cost several times as much.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
from datatrove.data import Document

from src.build_corpus.building import Building, read_json
from src.build_corpus.records import (
    BREAK,
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    record_of,
    text_of,
)
from src.build_corpus.settings import ExampleOptions, Options, listed
from src.build_corpus.sources import Source
from src.data.ngram_overlap import NgramIndex
from src.errors import UserError, first_line
from src.files.durable import write_with_checksum

SCHEMA = pa.schema([("text", pa.string())])
ROWS = 10_000
"""Maximum number of examples in a record batch."""
BYTES = 1 << 24
"""Size of the texts at which a record batch ends [bytes]."""
LONGEST_RECORD = 1 << 27
"""Maximum length of a line: 128 MiB, longer than any article [bytes]."""
_TOLD = 5
"""Maximum number of a file's bad records that are reported one by one; others are only counted."""


@dataclass(repr=False)  # which datatrove would log for each task, with the names of all files
class Parts:
    """Blocks that read the source file of the task's rank: `read` and `write`, or `choose`.

    Attributes:
        building: the folder of the unfinished corpus.
        options: the command's options.
        sources: the files, one for each rank.
        joined: whether metadata files, read before, say which articles are of the fields; otherwise
            the articles' own records do.
        records: number of `read`, `bad`, `other_field` and `no_text` records of the last file.
        fields: number of its records that name each field of study.
        told: a message for each of its first bad records.
    """

    building: Building
    options: Options
    sources: Sequence[Source]
    joined: bool = False
    records: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def choose(self, data: object, rank: int, world_size: int) -> None:
        """Store digests of the identities of the articles that a metadata file says to take."""
        chosen = [_digest(identity) for _, identity in self._wanted(rank, identity_of)]
        ids = np.asarray(chosen, np.uint64)
        write_with_checksum(self.building.path("metadata", rank, ".ids"), ids.tofile)
        self._note("metadata", rank, self.records)

    def read(self, data: object, rank: int, world_size: int) -> Iterator[Document]:
        """Yield a document for each article of the fields that has a text."""
        for number, text in self._wanted(rank, text_of):
            if not text or text.isspace():
                self.records["no_text"] += 1
            else:
                yield Document(text, f"{self.sources[rank].name}:{number}")

    def write(self, data: Iterable[Document], rank: int, world_size: int) -> None:
        """Write the examples of the articles that are left, and their digests.

        White space in an example is single spaces, and no example is blank.
        """
        part, keys = self.building.path("sources", rank, ".arrow"), bytearray()
        counts = Counter(articles=0, made=0, too_short=0, contaminated=0)
        write_with_checksum(part, lambda file: _write(file, self._examples(data, counts), keys))
        write_with_checksum(part.with_suffix(".keys"), lambda file: file.write_bytes(keys))
        kept, left = counts.pop("articles"), ("other_field", "no_text", "bad")
        records = {reason: self.records[reason] for reason in left}
        read = self.records["read"]
        records |= {"filtered": read - kept - sum(records.values()), "read": read, "kept": kept}
        self._note("sources", rank, records, examples=counts)

    def _note(self, step: str, rank: int, records: dict[str, int], **counted: Any) -> None:
        counted |= {"records": records, "fields": self.fields, "told": self.told}
        self.building.note(step, rank, **counted)

    def _wanted(self, rank: int, take: Callable[[Record], str]) -> Iterator[tuple[int, str]]:
        """Yield the line number and `take(record)` of each record of the fields.

        Raises:
            UserError: the file is damaged, was changed, has a line that is too long, or has a bad
                record where `bad_records=refuse`.
        """
        self.records, self.fields, self.told = Counter(), Counter(), []  # of this file alone
        source, number, is_wanted = self.sources[rank], 0, self._chosen_by()
        try:
            # as bytes: what is not UTF-8 is then found line by line
            with fsspec.open(source.name, "rb", compression="infer") as file:
                lines = iter(lambda: file.readline(LONGEST_RECORD + 1), b"")
                for number, line in enumerate(lines, start=1):
                    place = f"{source.name}, line {number}"
                    if len(line) > LONGEST_RECORD:
                        most = f"{LONGEST_RECORD >> 20} MiB"
                        raise UserError(f"{place}: longer than {most}, which no record may be")
                    if line.isspace():
                        continue
                    self.records["read"] += 1
                    try:
                        record = record_of(line)
                        if is_wanted(record):
                            yield number, take(record)
                        else:
                            self.records["other_field"] += 1
                    except BadRecordError as error:
                        self._leave_out(f"{place}: {error}")
        except (OSError, EOFError, zlib.error) as error:
            reason = first_line(error)
            raise UserError(f"{source.name} is damaged after line {number}: {reason}") from error
        source.check_unchanged()

    def _chosen_by(self) -> Callable[[Record], bool]:
        """Return a function that says whether a record is of the fields."""
        wanted = {name.casefold() for name in listed(self.options.field_of_study)}
        if not self.joined:
            return lambda record: not wanted or self._names_any(wanted, record)
        files = self.building.folder.glob("metadata-*.ids")
        chosen = np.unique(np.concatenate([np.fromfile(file, np.uint64) for file in files]))

        def is_chosen(record: Record) -> bool:
            digest = np.uint64(_digest(identity_of(record)))
            place = np.searchsorted(chosen, digest)
            return bool((chosen[place : place + 1] == digest).any())

        return is_chosen

    def _names_any(self, wanted: set[str], record: Record) -> bool:
        found = fields_of(record)
        self.fields.update(found or {"none"})
        return any(name.casefold() in wanted for name in found)

    def _leave_out(self, told: str) -> None:
        if self.options.bad_records == "refuse":
            raise UserError(f"{told}; correct it, or leave such records out: bad_records=skip")
        self.records["bad"] += 1
        self.told += [told] if len(self.told) < _TOLD else []

    def _examples(self, data: Iterable[Document], counts: Counter[str]) -> Iterator[bytes]:
        options, ngram, index = self.options.examples, self.options.decontaminate, None
        if ngram is not None:
            index = NgramIndex(read_json(self.building.folder / "evaluated.json"), ngram)
        for article in data:
            counts["articles"] += 1
            for words in filter(None, words_of_examples(article.text, options)):
                counts["made"] += 1
                text = " ".join(words)
                if len(words) < options.min_words:
                    counts["too_short"] += 1
                elif index is not None and index.overlaps(text):
                    counts["contaminated"] += 1
                else:
                    yield text.encode("utf-8")


def words_of_examples(text: str, options: ExampleOptions) -> Iterator[list[str]]:
    """Yield the words of each example of an article, in order; examples may be blank."""
    if options.by in ("paragraph", "line"):
        yield from map(str.split, text.split(BREAK if options.by == "paragraph" else "\n"))
        return
    words = text.split()
    size = options.words if options.by == "words" else len(words)
    yield from (words[start : start + size] for start in range(0, len(words), size))


def _write(path: Path, texts: Iterable[bytes], keys: bytearray) -> None:
    """Write texts as an Arrow stream, and add their digests to `keys`."""
    batch: list[bytes] = []
    size = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as stream:
        for text in texts:
            batch.append(text)
            size += len(text)
            keys += hashlib.blake2b(text, digest_size=16).digest()
            if len(batch) == ROWS or size >= BYTES:
                stream.write_batch(_rows(batch))
                batch, size = [], 0
        if batch:
            stream.write_batch(_rows(batch))


def _rows(texts: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(texts, pa.binary()).cast(pa.string())], schema=SCHEMA)


def _digest(identity: str) -> int:
    """Return 64 bits of an identity; among 10^7 articles, one in 10^12 others has the same."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
