"""Texts of several lengths side by side, padded on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

PAD_TO = 8
"""Of which widths are multiples: an accelerator's kernels are fastest there, and kernels are built
for each new shape that a product has (15 ms for one linear layer in bf16 on a CPU)."""


def pad(
    token_ids: Sequence[np.ndarray], pad_id: int, width: int | None = None
) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask`, int64 `(examples, width)`, padded on the right.

    `width` is that of the longest example if it is not given.
    """
    width = width or max(len(ids) for ids in token_ids)
    mask = [np.ones(len(ids), dtype=np.int64) for ids in token_ids]
    return {
        "input_ids": pad_rows(token_ids, pad_id, width),
        "attention_mask": pad_rows(mask, 0, width),
    }


def pad_token_types(rows: Sequence[Mapping[str, Any]], width: int) -> dict[str, Tensor]:
    """`token_type_ids` in the form of `pad`; nothing where the rows have none."""
    if "token_type_ids" not in rows[0]:
        return {}
    types = [np.asarray(row["token_type_ids"], dtype=np.int64) for row in rows]
    return {"token_type_ids": pad_rows(types, 0, width)}


def pad_rows(values: Sequence[np.ndarray], filler: int, width: int) -> Tensor:
    """`values` as int64 `(examples, width)`, filled up on the right."""
    padded = np.full((len(values), width), filler, dtype=np.int64)
    for row, own in enumerate(values):
        padded[row, : len(own)] = own
    return torch.from_numpy(padded)


def pad_pairs(pairs: Sequence[np.ndarray], width: int) -> Tensor:
    """Bools of pairs of positions, `(tokens, tokens)` each, as `(examples, width, width)`.

    Padding has the first position alone: it must attend to something, and none attends to it.
    """
    padded = np.zeros((len(pairs), width, width), dtype=bool)
    padded[:, :, 0] = True
    for row, own in enumerate(pairs):
        padded[row, : len(own), : len(own)] = own
    return torch.from_numpy(padded)


def width_of(token_ids: Sequence[np.ndarray], max_positions: int | None) -> int:
    """Return the padded length: the next multiple of `PAD_TO` of the longest example's.

    Args:
        max_positions: the longest input that the body takes; None if any.
    """
    longest = max(len(ids) for ids in token_ids)
    width = -(-longest // PAD_TO) * PAD_TO
    return width if max_positions is None else max(longest, min(width, max_positions))
