"""A datatrove block that finds examples that repeat an earlier one, by the digests of all parts.

Digests are BLAKE2b with 128 bits: among 10^9 different texts, two have the same digest with a
probability below 10^-20. The memory does not grow with the number of examples, but for a byte each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building, sums_of
from src.errors import UserError
from src.files.durable import write_with_checksum

AT_ONCE = 1 << 22
"""Approximate number of digests that are compared at a time."""


class NoExamplesError(UserError):
    """Raised where no example is left to make a corpus of."""


class Repeats(PipelineStep):
    """Writes which examples of each part repeat an earlier one, in the order of the sources.

    Raises:
        NoExamplesError: no example is left; the message says why.
    """

    type, name = "dedup", "exact repeats"

    def __init__(self, building: Building, deduplicate: bool) -> None:
        super().__init__()
        self.building, self.deduplicate = building, deduplicate

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        files = sorted(self.building.folder.glob("sources-*.keys"))
        keys = [
            # what is empty cannot be mapped
            (np.memmap(file, "<u8", mode="r") if file.stat().st_size else np.zeros(0, "<u8"))
            for file in files
        ]
        if not sum(map(len, keys)):
            raise NoExamplesError(self._why_none(len(files)))
        dropped = [np.zeros(len(part) // 2, dtype=bool) for part in keys]
        if self.deduplicate:
            mark_repeats([part.reshape(-1, 2) for part in keys], dropped)
        for file, marks in zip(files, dropped, strict=True):
            write_with_checksum(file.with_suffix(".marks"), marks.tofile)

    def _why_none(self, files: int) -> str:
        parts = self.building.noted("sources")
        records, found, fields = (sums_of(parts, key) for key in ("records", "examples", "fields"))
        reasons = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in records.items())
        most = sorted(fields, key=lambda name: -fields[name])[:8]
        named = ", ".join(f"{name} ({fields[name]:,})" for name in most)
        return (
            f"no examples in {records['read']:,} records of {files} files: {reasons}; of "
            f"{found['made']:,} examples {found['too_short']:,} are too short and "
            f"{found['contaminated']:,} hold texts of dev or test"
            + (f"; fields of study: {named}" if named else "")
        )


def mark_repeats(keys: Sequence[np.ndarray], dropped: Sequence[np.ndarray]) -> None:
    """Set `dropped` where an earlier example has the same digest.

    Args:
        keys: the digests of each part, uint64 `(examples, 2)`.
        dropped: the marks of each part, bool `(examples,)`; changed in place.
    """
    shares = max(1, -(-sum(map(len, keys)) // AT_ONCE))
    for share in range(shares):
        inside = [np.flatnonzero(part[:, 0] % shares == share) for part in keys]
        digests = np.concatenate([part[rows] for part, rows in zip(keys, inside, strict=True)])
        repeated = pd.DataFrame(digests).duplicated().to_numpy()
        ends = np.cumsum([len(rows) for rows in inside])
        for marks, rows, own in zip(dropped, inside, np.split(repeated, ends[:-1]), strict=True):
            marks[rows] = own
