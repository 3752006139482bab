"""Pads texts of several lengths on the right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

WIDTH_MULTIPLE = 8
"""Widths are multiples of this [tokens]: kernels of GPUs are fastest there, and on a CPU oneDNN
builds kernels for each new shape of a matrix product (15 ms for one linear layer in bf16).
"""


def pad(
    token_ids: Sequence[np.ndarray], pad_id: int, width: int | None = None
) -> dict[str, Tensor]:
    """Return `input_ids` and `attention_mask`, int64 `(examples, width)`.

    Args:
        token_ids: token ids of each example, `(tokens,)`.
        pad_id: id of the padding token.
        width: width of the result; None for the length of the longest example [tokens].
    """
    width = width or max(len(ids) for ids in token_ids)
    mask = [np.ones(len(ids), dtype=np.int64) for ids in token_ids]
    return {
        "input_ids": pad_rows(token_ids, pad_id, width),
        "attention_mask": pad_rows(mask, 0, width),
    }


def pad_rows(values: Sequence[np.ndarray], filler: int, width: int) -> Tensor:
    """Return `values`, padded with `filler`, as int64 `(examples, width)`."""
    padded = np.full((len(values), width), filler, dtype=np.int64)
    for row, own in enumerate(values):
        padded[row, : len(own)] = own
    return torch.from_numpy(padded)


def pad_pairs(pairs: Sequence[np.ndarray], width: int) -> Tensor:
    """Return masks of pairs of positions, `(tokens, tokens)` each, as `(examples, width, width)`.

    Padding attends to the first position, because each position must attend to at least one, and no
    position attends to padding.
    """
    padded = np.zeros((len(pairs), width, width), dtype=bool)
    padded[:, :, 0] = True
    for row, own in enumerate(pairs):
        padded[row, : len(own), : len(own)] = own
    return torch.from_numpy(padded)


def padded_width(token_ids: Sequence[np.ndarray], max_positions: int | None) -> int:
    """Return the longest example's length, rounded up to a multiple of `WIDTH_MULTIPLE`.

    Args:
        token_ids: token ids of each example, `(tokens,)`.
        max_positions: longest input of the body, which the width exceeds only if an example does;
            None where there is no limit [tokens].
    """
    longest = max(len(ids) for ids in token_ids)
    width = -(-longest // WIDTH_MULTIPLE) * WIDTH_MULTIPLE
    return width if max_positions is None else max(longest, min(width, max_positions))
