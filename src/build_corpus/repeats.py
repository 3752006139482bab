"""Which examples repeat an earlier one: a datatrove block over the digests of all parts.

BLAKE2b with 128 bits: among 10^9 different texts, two have the same digest with a probability below
10^-20. Memory does not depend on the number of examples but for a byte each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from datatrove.pipeline.base import PipelineStep

from src.build_corpus.layout import Building, read_json
from src.errors import UserError
from src.run_folder.durable import write_with_checksum

AT_ONCE = 1 << 22
"""Digests that are compared at once, about."""


class NoExamplesError(UserError):
    """Nothing was chosen of what was read."""


class Repeats(PipelineStep):
    """Writes of each part which examples repeat an earlier one, in the order of the sources."""

    type, name = "dedup", "exact repeats"

    def __init__(self, building: Building, parts: int, deduplicate: bool) -> None:
        super().__init__()
        self.building, self.parts, self.deduplicate = building, parts, deduplicate

    def run(self, data: object = None, rank: int = 0, world_size: int = 1) -> None:
        path, keys = self.building.path, []
        for part in range(self.parts):
            file = path("sources", part, ".keys")
            empty = not file.stat().st_size  # which cannot be mapped
            mapped = np.zeros(0, "<u8") if empty else np.memmap(file, "<u8", mode="r")
            keys.append(mapped.reshape(-1, 2))
        if not sum(map(len, keys)):
            raise NoExamplesError(self._why_none())
        dropped = [np.zeros(len(part), dtype=bool) for part in keys]
        if self.deduplicate:
            mark_repeats(keys, dropped)
        for part, marks in enumerate(dropped):
            write_with_checksum(path("sources", part, ".marks"), marks.tofile)

    def _why_none(self) -> str:
        records, fields, found = Counter[str](), Counter[str](), Counter[str]()
        for part in range(self.parts):
            counted = read_json(self.building.path("sources", part, ".json"))
            records.update(counted["records"])
            found.update(counted["examples"])
            fields.update(counted["fields"])
        named = [f"{name} ({count:,})" for name, count in fields.most_common(8)]
        reasons = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in records.items()]
        return (
            f"no examples in {records['read']:,} records of {self.parts} files: "
            f"{', '.join(reasons[1:])}; of {found['made']:,} examples {found['too_short']:,} are "
            f"too short and {found['contaminated']:,} hold texts of dev or test"
            + (f"; fields of study: {', '.join(named)}" if named else "")
        )


def mark_repeats(keys: Sequence[np.ndarray], dropped: Sequence[np.ndarray]) -> None:
    """Set `dropped` where an earlier example has the same digest.

    Args:
        keys: of each part, uint64 `(examples, 2)`.
        dropped: of each part, bool `(examples,)`.
    """
    ranges = max(1, -(-sum(map(len, keys)) // AT_ONCE))
    edges = [np.uint64((number << 64) // ranges) for number in range(ranges)]
    starts = np.cumsum([0, *map(len, keys)]).tolist()
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        inside = [_rows(part[:, 0], low, high) for part in keys]
        digests = np.concatenate([part[rows] for part, rows in zip(keys, inside, strict=True)])
        row = np.concatenate([rows + s for rows, s in zip(inside, starts, strict=False)])
        order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: the first of equals stays so
        same = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
        again = np.sort(row[order[1:][same]])
        places = np.searchsorted(again, starts).tolist()
        for part, (begin, end) in enumerate(pairwise(places)):
            dropped[part][again[begin:end] - starts[part]] = True


def _rows(first: np.ndarray, low: np.uint64, high: np.uint64 | None) -> np.ndarray:
    return np.flatnonzero(first >= low if high is None else (first >= low) & (first < high))
