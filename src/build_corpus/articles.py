"""Reading: a datatrove block that turns files of records into one document an article."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

import fsspec
import numpy as np
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building, write_json
from src.build_corpus.records import (
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    paragraphs_of,
    record_of,
)
from src.build_corpus.settings import Settings
from src.build_corpus.sources import Source
from src.errors import UserError
from src.run_folder.durable import write_with_checksum

BREAK = "\n\n"
"""Between two paragraphs of a document, and nowhere else in it."""
_TOLD = 5
"""Bad records of a file that are told of; the others are only counted."""
LONGEST_RECORD = 1 << 27
"""Bytes of a line: 128 MiB, beyond which it is no article's."""
_BLANK_LINES = re.compile(r"\n\s*\n")


class Articles(PipelineStep):
    """Reads the file of its task's rank: articles of the fields, each a document.

    Attributes:
        records: counts of `read`, `bad`, `other_field` and `no_text` records.
        fields: how many records name each field of study.
        told: a line about each of the first bad records.
    """

    type, name = "reader", "articles"

    def __init__(
        self, building: Building, settings: Settings, sources: Sequence[Source], joined: bool
    ) -> None:
        """`joined`: metadata says which articles to take, not the articles themselves."""
        super().__init__()
        self.building, self.settings, self.sources = building, settings, sources
        self.joined = joined
        self.records, self.fields, self.told = Counter[str](), Counter[str](), list[str]()
        self._wanted = {name.casefold() for name in settings.field_of_study}
        self._chosen = np.zeros(0, np.uint64)

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        if self.joined:
            files = self.building.folder.glob("metadata-*.ids")
            chosen = [np.fromfile(file, np.uint64) for file in files]
            self._chosen = np.unique(np.concatenate(chosen))
        source = self.sources[rank]
        for number, record in self._read(source):
            try:
                if not self._is_wanted(record):
                    self.records["other_field"] += 1
                    continue
                text = BREAK.join(_BLANK_LINES.sub("\n", p) for p in paragraphs_of(record))
                if not text.isascii():
                    text.encode("utf-8")
            except (BadRecordError, UnicodeEncodeError) as error:
                self._bad(source, number, error)
                continue
            if not text or text.isspace():
                self.records["no_text"] += 1
            else:
                yield Document(text, f"{source.name}:{number}")

    def choose(self, source: Source) -> np.ndarray:
        """Digests of the identities of the articles of the fields that a file names.

        Raises:
            UserError: see `Settings.bad_records`.
        """
        chosen: list[int] = []
        for number, record in self._read(source):
            try:
                if self._is_wanted(record):
                    chosen.append(_digest(identity_of(record)))
            except BadRecordError as error:
                self._bad(source, number, error)
        return np.asarray(chosen, np.uint64)

    def _is_wanted(self, record: Record) -> bool:
        if self.joined:
            digest = np.uint64(_digest(identity_of(record)))
            place = np.searchsorted(self._chosen, digest)
            return bool((self._chosen[place : place + 1] == digest).any())
        if not self._wanted:
            return True
        found = fields_of(record)
        self.fields.update(found or {"none"})
        return any(name.casefold() in self._wanted for name in found)

    def _read(self, source: Source) -> Iterator[tuple[int, Record]]:
        number = 0
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
                    if not line.isspace():
                        self.records["read"] += 1
                        try:
                            record = record_of(line)
                        except BadRecordError as error:
                            self._bad(source, number, error)
                            continue
                        yield number, record
        except (OSError, EOFError, zlib.error) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{source.name} is damaged after line {number}: {reason}") from error

    def _bad(self, source: Source, number: int, error: Exception) -> None:
        half = isinstance(error, UnicodeEncodeError)
        why = "its text holds half of a surrogate pair" if half else error
        told = f"{source.name}, line {number}: {why}"
        if self.settings.bad_records == "refuse":
            raise UserError(f"{told}; correct it, or leave such records out: bad_records=skip")
        self.records["bad"] += 1
        self.told += [told] if len(self.told) < _TOLD else []


class ChosenArticles(PipelineStep):
    """Reads the metadata of its rank and writes down which articles are of the fields."""

    type, name = "reader", "metadata"

    def __init__(self, articles: Articles) -> None:
        super().__init__()
        self.articles = articles

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        articles, building = self.articles, self.articles.building
        seen = articles.sources[rank].seen()
        chosen = articles.choose(articles.sources[rank])
        write_with_checksum(building.path("metadata", rank, ".ids"), chosen.tofile)
        records, fields = dict(articles.records), dict(articles.fields)
        counted = {"source": seen, "records": records, "fields": fields, "told": articles.told}
        write_json(building.path("metadata", rank, ".json"), counted)


def _digest(identity: str) -> int:
    """64 bits of an article's identity: among 10^7 articles, one in 10^12 others looks chosen."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
