"""Which articles are of a field of study, where that is said in files of its own (S2ORC)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from src.build_corpus.digests import identity_digest, save_array
from src.build_corpus.layout import Building, write_json
from src.build_corpus.lines import Records
from src.build_corpus.records import BadRecordError, fields_of, identity_of
from src.build_corpus.settings import Settings
from src.build_corpus.sources import Source


@dataclass(frozen=True)
class MetadataFile:
    """A file of metadata to read."""

    building: Building
    settings: Settings
    index: int
    source: Source


def read_metadata(task: MetadataFile, pulse: Callable[[], None]) -> list[str]:
    """Write the digests of the identities of the articles of the fields.

    Returns:
        What is to be told of bad records.

    Raises:
        UserError: see `Records`.
    """
    source = task.source.seen()
    wanted = {name.casefold() for name in task.settings.field_of_study}
    records = Records(source, task.settings.bad_records)
    fields: Counter[str] = Counter()
    chosen: list[int] = []
    for number, record in records:
        pulse()
        try:
            found = fields_of(record)
            if any(name.casefold() in wanted for name in found):
                chosen.append(identity_digest(identity_of(record)))
        except BadRecordError as error:
            records.bad(number, error)
            continue
        fields.update(found or {"none"})
    identities = np.unique(np.asarray(chosen, dtype=np.uint64))
    save_array(task.building.metadata(task.index, ".npy"), identities)
    counted = {
        "source": asdict(source),
        "records": {"read": records.counts["read"], "bad": records.counts["bad"]},
        "chosen": len(identities),
        "fields_of_study": dict(sorted(fields.items())),
    }
    write_json(task.building.metadata(task.index, ".json"), counted)
    return records.told


def join_metadata(building: Building, files: int) -> None:
    """Make one sorted array of what the files chose, for all processes to map."""
    parts = [np.load(building.metadata(index, ".npy")) for index in range(files)]
    save_array(building.chosen, np.unique(np.concatenate(parts)))


class ChosenArticles:
    """The articles that metadata chose, memory-mapped."""

    def __init__(self, building: Building) -> None:
        self._identities: Sequence[int] = np.load(building.chosen, mmap_mode="r")

    def __contains__(self, identity: str) -> bool:
        digest = np.uint64(identity_digest(identity))
        place = int(np.searchsorted(self._identities, digest))
        return place < len(self._identities) and self._identities[place] == digest
