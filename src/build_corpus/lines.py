"""The records of a shard, read as a stream through the `datasets` library."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import datasets
from datasets.utils.file_utils import xopen

from src.build_corpus.records import BadRecordError, Record, record_of
from src.build_corpus.sources import Source
from src.errors import UserError

_TOLD = 5
"""Bad records of a shard that are told of; the others are only counted."""


class Records:
    """The records of a shard, counted, with what to do about bad ones.

    Attributes:
        counts: `read` and `bad` records.
        told: a line about each of the first bad records.
    """

    def __init__(self, source: Source, bad_records: str) -> None:
        self._source, self._refuse = source, bad_records == "refuse"
        self.counts: Counter[str] = Counter()
        self.told: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        """`(line number, record)` of each line that holds a record.

        Raises:
            UserError: the file is damaged, or has a bad record and these are refused.
        """
        for number, line in self._lines():
            if not line or line.isspace():
                continue
            self.counts["read"] += 1
            try:
                yield number, record_of(line)
            except BadRecordError as error:
                self.bad(number, error)

    def bad(self, number: int, error: BadRecordError) -> None:
        """A record that cannot be used.

        Raises:
            UserError: bad records are refused.
        """
        told = f"{self._source.name}, line {number}: {error}"
        if self._refuse:
            raise UserError(f"{told}; correct it, or leave such records out: bad_records=skip")
        self.counts["bad"] += 1
        if len(self.told) < _TOLD:
            self.told.append(told)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        number, name = 0, self._source.name
        try:
            # as bytes: what is not UTF-8 is then found line by line
            with xopen(datasets.StreamingDownloadManager().extract(name), "rb") as file:
                for number, line in enumerate(file, start=1):
                    yield number, line
        except (OSError, EOFError, zlib.error) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{name} is damaged after line {number}: {reason}") from error
