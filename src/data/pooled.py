"""Presents the rows of several corpora as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np


class PooledRows:
    """The rows of all `parts`, one after the other; each part is read where it lies.

    Args:
        parts: at least one data set; only the columns that all of them have are kept.
    """

    def __init__(self, parts: Sequence[datasets.Dataset]) -> None:
        self._parts = list(parts)
        self._ends = np.cumsum([len(part) for part in self._parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, indices: list[int]) -> dict[str, list[Any]]:
        """Return the columns of the rows at `indices`, in that order."""
        wanted = np.asarray(indices)
        owners = np.searchsorted(self._ends, wanted, side="right")
        rows: list[Any] = [None] * len(wanted)
        for number, part in enumerate(self._parts):
            places = np.flatnonzero(owners == number)
            if len(places):
                start = int(self._ends[number]) - len(part)
                columns = part[(wanted[places] - start).tolist()]
                for place, ids in zip(places, columns["input_ids"], strict=True):
                    rows[place] = ids
        return {"input_ids": rows}


def pooled(parts: Sequence[datasets.Dataset]) -> datasets.Dataset | PooledRows:
    """Return all rows of `parts` as one data set; a single part is returned as it is."""
    return parts[0] if len(parts) == 1 else PooledRows(parts)
