"""Blocks that read files of articles, or of the fields of study of articles.

Articles are datatrove documents, so that its filters can leave some out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from datatrove.data import Document

from tartan.build_corpus.building import Building
from tartan.build_corpus.records import (
    BadRecordError,
    Record,
    fields_of,
    identity_of,
    record_of,
    text_of,
)
from tartan.build_corpus.settings import Options, listed
from tartan.build_corpus.sources import Source
from tartan.errors import UserError

Wanted = Callable[[Record], bool]
"""A function that says whether to take a record."""
_TOLD = 5
"""Maximum number of a file's bad records that are reported one by one; others are only counted."""


@dataclass
class Seen:
    """What is noted of a file.

    Attributes:
        records: number of `read`, `bad`, `other_field` and `no_text` records.
        fields: number of records that name each field of study.
        told: a message for each of the first bad records.
    """

    records: Counter[str] = field(
        default_factory=lambda: Counter(other_field=0, no_text=0, bad=0, read=0)
    )
    fields: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)


@dataclass(repr=False)  # which datatrove would log for each task, with the names of all files
class Articles:
    """Blocks that read the file of the task's rank: `read`, or `choose` for a metadata file.

    Attributes:
        building: the folder of the unfinished corpus.
        options: the command's options.
        files: the files, one for each rank.
    """

    building: Building
    options: Options
    files: Sequence[Source]

    def choose(self, data: object, rank: int, world_size: int) -> None:
        """Store digests of the identities of the articles that a metadata file says to take."""
        seen = Seen()
        chosen = self._records(rank, self._is_named(seen), identity_of, seen)
        digests = np.fromiter((_digest(identity) for _, identity in chosen), np.uint64)
        self.building.path("metadata", rank, ".ids").write_bytes(digests.tobytes())
        self.building.note("metadata", rank, vars(seen))

    def read(self, data: object, rank: int, world_size: int) -> Iterator[Document]:
        """Yield a document for each article of the fields that has a text."""
        seen = Seen()
        is_wanted = self._is_chosen() if self.options.metadata else self._is_named(seen)
        for place, text in self._records(rank, is_wanted, text_of, seen):
            if not text or text.isspace():
                seen.records["no_text"] += 1
            else:
                yield Document(text, place)
        self.building.note("sources", rank, vars(seen))

    def _is_named(self, seen: Seen) -> Wanted:
        """Return a function that says whether a record names one of the fields."""
        wanted = {name.casefold() for name in listed(self.options.field_of_study)}

        def is_named(record: Record) -> bool:
            found = fields_of(record)
            # sorted, because a set's order is another in each process
            seen.fields.update(sorted(found) or ["none"])
            return not wanted.isdisjoint(map(str.casefold, found))

        return is_named if wanted else lambda record: True

    def _is_chosen(self) -> Wanted:
        """Return a function that says whether the metadata of a record's article was chosen."""
        files = self.building.folder.glob("metadata-*.ids")
        chosen = np.unique(np.concatenate([np.fromfile(file, np.uint64) for file in files]))

        def is_chosen(record: Record) -> bool:
            digest = np.uint64(_digest(identity_of(record)))
            place = np.searchsorted(chosen, digest)
            return bool((chosen[place : place + 1] == digest).any())

        return is_chosen

    def _records(
        self, rank: int, is_wanted: Wanted, take: Callable[[Record], str], seen: Seen
    ) -> Iterator[tuple[str, str]]:
        """Yield the place and `take(record)` of each wanted record of a file.

        Raises:
            UserError: the file is damaged, was changed, has a line that is too long, or has a bad
                record where `bad_records=refuse`.
        """
        for place, line in self.files[rank].lines():
            seen.records["read"] += 1
            try:
                record = record_of(line)
                taken = take(record) if is_wanted(record) else None
            except BadRecordError as error:
                told = f"{place}: {error}"
                if self.options.bad_records == "refuse":
                    advice = "correct it, or leave such records out: bad_records=skip"
                    raise UserError(f"{told}; {advice}") from error
                seen.records["bad"] += 1
                seen.told = [*seen.told, told][:_TOLD]
                continue
            if taken is None:
                seen.records["other_field"] += 1
            else:
                yield place, taken


def _digest(identity: str) -> int:
    """Return 64 bits of an identity; among 10^7 articles, one in 10^12 others has the same."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big")
