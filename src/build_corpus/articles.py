"""datatrove blocks that read articles from files of JSON records."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import fsspec
import numpy as np
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building
from src.build_corpus.records import (
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    record_of,
    text_of,
)
from src.build_corpus.settings import Settings
from src.build_corpus.sources import Source
from src.errors import UserError, first_line
from src.files.durable import write_with_checksum

_TOLD = 5
"""Maximum number of a file's bad records that are reported one by one; others are only counted."""
LONGEST_RECORD = 1 << 27
"""Maximum length of a line: 128 MiB, longer than any article [bytes]."""


class Articles(PipelineStep):
    """Reads one source file, that of the task's rank: a document for each article of the fields.

    Args:
        building: the folder of the unfinished corpus.
        settings: the corpus' settings.
        sources: the source files, one for each rank.
        joined: whether metadata files, read before, say which articles are of the fields; otherwise
            the articles' own records do.

    Attributes:
        records: number of `read`, `bad`, `other_field` and `no_text` records.
        fields: number of records that name each field of study.
        told: a message for each of the first bad records.
    """

    type, name = "reader", "articles"

    def __init__(
        self, building: Building, settings: Settings, sources: Sequence[Source], joined: bool
    ) -> None:
        super().__init__()
        self.building, self.settings, self.sources = building, settings, sources
        self.records, self.fields, self.told = Counter[str](), Counter[str](), list[str]()
        self._wanted_fields = {name.casefold() for name in settings.field_of_study}
        self._joined, self._chosen = joined, np.zeros(0, np.uint64)

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        if self._joined:
            files = self.building.folder.glob("metadata-*.ids")
            chosen = [np.fromfile(file, np.uint64) for file in files]
            self._chosen = np.unique(np.concatenate(chosen))
        for number, text in self.wanted(rank, text_of):
            if not text or text.isspace():
                self.records["no_text"] += 1
            else:
                yield Document(text, f"{self.sources[rank].name}:{number}")

    def wanted(self, rank: int, take: Callable[[Record], str]) -> Iterator[tuple[int, str]]:
        """Yield the line number and `take(record)` of each record of the fields.

        Raises:
            UserError: the file is damaged, was changed, has a line that is too long, or has a bad
                record where `bad_records=refuse`.
        """
        source, number = self.sources[rank], 0
        try:
            # as bytes: what is not UTF-8 is then found line by line
            with fsspec.open(source.name, "rb", compression="infer") as file:
                lines = iter(lambda: file.readline(LONGEST_RECORD + 1), b"")
                for number, line in enumerate(lines, start=1):
                    if len(line) > LONGEST_RECORD:
                        raise UserError(
                            f"{source.name}, line {number}: longer than "
                            f"{LONGEST_RECORD >> 20} MiB, which no record may be"
                        )
                    if line.isspace():
                        continue
                    self.records["read"] += 1
                    try:
                        record = record_of(line)
                        if self._is_wanted(record):
                            yield number, take(record)
                        else:
                            self.records["other_field"] += 1
                    except BadRecordError as error:
                        self._note_bad(f"{source.name}, line {number}: {error}")
        except (OSError, EOFError, zlib.error) as error:
            reason = first_line(error)
            raise UserError(f"{source.name} is damaged after line {number}: {reason}") from error
        source.check_unchanged()

    def _is_wanted(self, record: Record) -> bool:
        if self._joined:
            digest = np.uint64(_digest(identity_of(record)))
            place = np.searchsorted(self._chosen, digest)
            return bool((self._chosen[place : place + 1] == digest).any())
        if not self._wanted_fields:
            return True
        found = fields_of(record)
        self.fields.update(found or {"none"})
        return any(name.casefold() in self._wanted_fields for name in found)

    def _note_bad(self, told: str) -> None:
        if self.settings.bad_records == "refuse":
            raise UserError(f"{told}; correct it, or leave such records out: bad_records=skip")
        self.records["bad"] += 1
        self.told += [told] if len(self.told) < _TOLD else []


class ChosenArticles(Articles):
    """Reads one metadata file and stores digests of the articles that are of the fields."""

    type, name = "reader", "metadata"

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:  # type: ignore[override]
        chosen = [_digest(identity) for _, identity in self.wanted(rank, identity_of)]
        ids = np.asarray(chosen, np.uint64)
        write_with_checksum(self.building.path("metadata", rank, ".ids"), ids.tofile)
        counted = {"records": self.records, "fields": self.fields, "told": self.told}
        self.building.note("metadata", rank, counted)


def _digest(identity: str) -> int:
    """Return 64 bits of an identity; among 10^7 articles, one in 10^12 others has the same."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
