"""Finds examples that repeat an earlier one, by the digests of all parts.

Digests are BLAKE2b with 128 bits: among 10^9 different texts, two have the same digest with a
probability below 10^-20. The memory does not grow with the number of examples, but for a byte each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tartan.build_corpus.building import Building, counts_in_words
from tartan.errors import UserError

AT_ONCE = 1 << 22
"""Approximate number of digests that are compared at a time."""


def write_repeats(
    building: Building, deduplicate: bool, data: object, rank: int, world_size: int
) -> None:
    """Write which examples of each part repeat an earlier one, in the order of the sources.

    Raises:
        UserError: no example is left; the message says why.
    """
    files = sorted(building.folder.glob("sources-*.keys"))
    keys = [
        # what is empty cannot be mapped
        (np.memmap(file, "<u8", mode="r") if file.stat().st_size else np.zeros(0, "<u8"))
        for file in files
    ]
    if not sum(map(len, keys)):
        records, fields = (building.total("sources", key) for key in ("records", "fields"))
        found = building.total("examples", "examples")
        building.remove()  # there is nothing to go on with
        most = (f"{name} ({count:,})" for name, count in fields.most_common(8))
        named = ", ".join(most) or "not asked for"
        raise UserError(
            f"no examples in {records.pop('read'):,} records of {len(files)} files: "
            f"{counts_in_words(records)}; of the examples: {counts_in_words(found)}; fields of "
            f"study: {named}"
        )
    dropped = [np.zeros(len(part) // 2, dtype=bool) for part in keys]
    if deduplicate:
        mark_repeats([part.reshape(-1, 2) for part in keys], dropped)
    for file, marks in zip(files, dropped, strict=True):
        file.with_suffix(".marks").write_bytes(marks.tobytes())


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
