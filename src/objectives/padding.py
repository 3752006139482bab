"""Splitting a batch into micro-batches, and padding each to its own longest example."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from src.core.task import MicroBatch
from src.encoders.text_encoder import TextEncoder

PAD_TO, ROWS = 8, 4
"""Of what lengths and sizes of parts are multiples where padding is weighed against time. Kernels
are built for each new shape that a product has (15 ms for one linear layer in bf16 on a CPU), and
those of an accelerator are fastest at such lengths."""


@dataclass(frozen=True)
class Padding:
    """Into which parts a batch of texts is split, and how far each is padded.

    Attributes:
        pad_id: the padding token.
        micro_batch_size: examples of a part, at most.
        part_overhead: see `split_by_length`.
        max_positions: the longest input that the body takes; None if any.
    """

    pad_id: int
    micro_batch_size: int
    part_overhead: int | None = None
    max_positions: int | None = None

    @classmethod
    def of(cls, encoder: TextEncoder, micro_batch_size: int, part_overhead: int | None) -> Padding:
        """Return the padding that suits an encoder."""
        pad_id = int(encoder.tokenizer.pad_token_id)
        return cls(pad_id, micro_batch_size, part_overhead, encoder.max_positions)

    def split(self, lengths: Sequence[int]) -> list[list[int]]:
        """See `split_by_length`."""
        return split_by_length(lengths, self.micro_batch_size, self.part_overhead)

    def width(self, token_ids: Sequence[np.ndarray]) -> int:
        """See `width_of`."""
        return width_of(token_ids, self.part_overhead, self.max_positions)

    def parts(
        self, rows: Sequence[Mapping[str, Any]], token_ids: Sequence[np.ndarray]
    ) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Yield each part: positions of its examples in the batch, and what the body reads.

        Args:
            rows: the batch, of which `token_type_ids` are taken where there are any.
            token_ids: the tokens of each row, `(tokens,)`.
        """
        for members in self.split([len(ids) for ids in token_ids]):
            own = [token_ids[i] for i in members]
            width = self.width(own)
            inputs = pad(own, self.pad_id, width)
            yield members, inputs | pad_token_types([rows[i] for i in members], width)


def split_by_length(
    lengths: Sequence[int], micro_batch_size: int, part_overhead: int | None = None
) -> list[list[int]]:
    """Positions of a batch's examples in parts of at most `micro_batch_size`.

    Examples of similar length share a part, so that little is padding; which examples are in the
    batch is not changed, and neither is the gradient of the whole batch.

    Args:
        part_overhead: what a part costs besides its examples, in tokens. The parts are those that
            cost least: one more is worth while where it saves more padding. Lengths count as
            multiples of `PAD_TO`, and all parts but the shortest examples' hold a multiple of
            `ROWS` (or as many as they may). None makes as few parts as there can be.
    """
    by_length = sorted(range(len(lengths)), key=lambda position: lengths[position])
    if part_overhead is None:
        starts = list(range(0, len(by_length), micro_batch_size))
    else:
        ordered = [_multiple(lengths[position], PAD_TO) for position in by_length]
        starts = _cheapest_starts(ordered, micro_batch_size, part_overhead)
    ends = [*starts[1:], len(by_length)]
    return [by_length[start:end] for start, end in zip(starts, ends, strict=True)]


def _cheapest_starts(lengths: Sequence[int], most: int, overhead: int) -> list[int]:
    """Return the starts of the cheapest parts of ascending `lengths`, by dynamic programming.

    A part costs its longest length for each of its at most `most` examples, and `overhead`.
    """
    costs, last_start = [0.0], [0]
    rows = min(ROWS, most)
    for end in range(1, len(lengths) + 1):
        longest = lengths[end - 1]
        options = (
            (costs[start] + (end - start) * longest + overhead, start)
            for start in range(max(0, end - most), end)
            if start == 0 or (end - start) % rows == 0 or end - start == most
        )
        cost, start = min(options, default=(math.inf, 0))
        costs.append(cost)
        last_start.append(start)
    starts, end = [], len(lengths)
    while end:
        end = last_start[end]
        starts.append(end)
    return starts[::-1]


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


def width_of(
    token_ids: Sequence[np.ndarray], part_overhead: int | None, max_positions: int | None
) -> int:
    """Return the padded length: the longest example's, or the next multiple of `PAD_TO`.

    Args:
        part_overhead: see `split_by_length`; None pads no further.
        max_positions: the longest input that the body takes; None if any.
    """
    longest = max(len(ids) for ids in token_ids)
    if part_overhead is None:
        return longest
    width = _multiple(longest, PAD_TO)
    return width if max_positions is None else max(longest, min(width, max_positions))


def _multiple(length: int, of: int) -> int:
    return -(-length // of) * of


def tokens_and_padding(parts: Sequence[MicroBatch]) -> tuple[int, int]:
    """Count the positions of the micro-batches that hold a token, and those that do not."""
    tokens = sum(int(part.inputs["attention_mask"].sum()) for part in parts)
    return tokens, sum(part.inputs["attention_mask"].numel() for part in parts) - tokens
