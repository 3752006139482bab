"""Splitting a batch into micro-batches, and padding each to its own longest example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from src.core.task import MicroBatch


def split_by_length(
    lengths: Sequence[int], micro_batch_size: int, part_overhead: int | None = None
) -> list[list[int]]:
    """Positions of a batch's examples in parts of at most `micro_batch_size`.

    Examples of similar length share a part, so that little is padding; which examples are in the
    batch is not changed, and neither is the gradient of the whole batch.

    Args:
        part_overhead: what a part costs besides its examples, in tokens. The parts are those that
            cost least: one more is worth while where it saves more padding. None makes as few parts
            as there can be.
    """
    by_length = sorted(range(len(lengths)), key=lambda position: lengths[position])
    if part_overhead is None:
        starts = list(range(0, len(by_length), micro_batch_size))
    else:
        ordered = [lengths[position] for position in by_length]
        starts = _cheapest_starts(ordered, micro_batch_size, part_overhead)
    ends = [*starts[1:], len(by_length)]
    return [by_length[start:end] for start, end in zip(starts, ends, strict=True)]


def _cheapest_starts(lengths: Sequence[int], most: int, overhead: int) -> list[int]:
    """Where the parts of ascending `lengths` begin that cost least, by dynamic programming.

    A part costs its longest length for each of its at most `most` examples, and `overhead`.
    """
    costs, last_start = [0], [0]
    for end in range(1, len(lengths) + 1):
        longest = lengths[end - 1]
        options = (
            (costs[start] + (end - start) * longest + overhead, start)
            for start in range(max(0, end - most), end)
        )
        cost, start = min(options)
        costs.append(cost)
        last_start.append(start)
    starts, end = [], len(lengths)
    while end:
        end = last_start[end]
        starts.append(end)
    return starts[::-1]


def pad(token_ids: Sequence[np.ndarray], pad_id: int) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask`, int64 `(examples, longest)`, padded on the right."""
    mask = [np.ones(len(ids), dtype=np.int64) for ids in token_ids]
    return {"input_ids": _padded(token_ids, pad_id), "attention_mask": _padded(mask, 0)}


def pad_token_types(rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """`token_type_ids` in the form of `pad`; nothing where the rows have none."""
    if "token_type_ids" not in rows[0]:
        return {}
    types = [np.asarray(row["token_type_ids"], dtype=np.int64) for row in rows]
    return {"token_type_ids": _padded(types, 0)}


def _padded(values: Sequence[np.ndarray], filler: int) -> Tensor:
    longest = max(len(own) for own in values)
    padded = np.full((len(values), longest), filler, dtype=np.int64)
    for row, own in enumerate(values):
        padded[row, : len(own)] = own
    return torch.from_numpy(padded)


def tokens_and_padding(parts: Sequence[MicroBatch]) -> tuple[int, int]:
    """How many positions of the micro-batches hold a token, and how many do not."""
    tokens = sum(int(part.inputs["attention_mask"].sum()) for part in parts)
    return tokens, sum(part.inputs["attention_mask"].numel() for part in parts) - tokens
