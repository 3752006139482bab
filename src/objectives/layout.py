"""A batch of texts as micro-batches: rows of tokens without padding, or texts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from src.core.task import Inputs, MicroBatch
from src.encoders.text_encoder import TextEncoder
from src.objectives.padding import pad, pad_pairs, pad_rows, pad_token_types, width_of

TOKENS = 32
"""Of which packed rows hold a multiple: a processor that multiplies 16 bits builds kernels for each
new shape of a product (15 ms for one linear layer). A row of 1,000 tokens grows by 1.6 %."""

SPARE = 256
"""About what one more part costs on a CPU, where its gradient is added to the others' [tokens]."""


@dataclass(frozen=True)
class Part:
    """A part of a batch on its way to being a micro-batch.

    Attributes:
        members: places of its examples in the batch.
        inputs: what the body reads.
        starts: where each example begins, counted through all positions of the part.
    """

    members: list[int]
    inputs: dict[str, Any]
    starts: np.ndarray


@dataclass(frozen=True)
class Layout:
    """How a batch of texts is split, and each part laid out.

    Attributes:
        pad_id: the padding token.
        micro_batch_size: examples of a padded part, at most; a packed one holds no more tokens
            than so many examples as long as the batch's longest.
        packed: whether texts go through the body as one row of tokens.
        first_position: the number that the body gives to a text's first position.
        max_positions: the longest input that the body takes; None if any.
        spare: see `split_by_length`.
    """

    pad_id: int
    micro_batch_size: int
    packed: bool = False
    first_position: int = 0
    max_positions: int | None = None
    spare: int | None = None

    @classmethod
    def of(
        cls, encoder: TextEncoder, micro_batch_size: int, packed: bool, on_cpu: bool = False
    ) -> Layout:
        """Return the layout that suits an encoder.

        Args:
            packed: whether to pack texts, if the encoder reads such rows.
            on_cpu: whether the body is on a CPU, where padding costs more than further parts.
        """
        return cls(
            pad_id=int(encoder.tokenizer.pad_token_id),
            micro_batch_size=micro_batch_size,
            packed=packed and encoder.supports_packing,
            first_position=encoder.first_position,
            max_positions=encoder.max_positions,
            spare=SPARE if on_cpu else None,
        )

    def split(self, lengths: Sequence[int]) -> list[list[int]]:
        """Positions of a batch's examples, whose lengths are given, part by part."""
        if self.packed:
            return split_by_tokens(lengths, self.micro_batch_size)
        return split_by_length(lengths, self.micro_batch_size, self.spare)

    def parts(
        self,
        rows: Sequence[Mapping[str, Any]],
        token_ids: Sequence[np.ndarray],
        lengths: Sequence[int] | None = None,
    ) -> Iterator[Part]:
        """Yield each part of a batch.

        Args:
            rows: the batch, of which are taken, where there are any: `token_type_ids`;
                `position_ids`, where the body is not to count by itself; `pair_mask`, row by column
                which tokens a token attends to, bool `(tokens, tokens)`, where not all do to all.
            token_ids: the tokens of each row, `(tokens,)`.
            lengths: by which the batch is split; None takes the numbers of tokens.
        """
        if lengths is None:
            lengths = [len(ids) for ids in token_ids]
        for members in self.split(lengths):
            own_rows, own_ids = [rows[i] for i in members], [token_ids[i] for i in members]
            if self.packed:
                yield self._packed(members, own_rows, own_ids)
            else:
                yield self._padded(members, own_rows, own_ids)

    def _padded(
        self, members: list[int], rows: Sequence[Mapping[str, Any]], ids: Sequence[np.ndarray]
    ) -> Part:
        width = width_of(ids, self.max_positions)
        inputs = pad(ids, self.pad_id, width) | pad_token_types(rows, width)
        if "position_ids" in rows[0]:
            places = [row["position_ids"] for row in rows]
            inputs["position_ids"] = pad_rows(places, self.first_position, width)
        if "pair_mask" in rows[0]:
            inputs["pair_mask"] = pad_pairs([row["pair_mask"] for row in rows], width)
        return Part(members, inputs, width * np.arange(len(members)))

    def _packed(
        self, members: list[int], rows: Sequence[Mapping[str, Any]], ids: Sequence[np.ndarray]
    ) -> Part:
        # a body has states of tokens only: a text without any is read as one of padding
        ids = [own if len(own) else np.array([self.pad_id]) for own in ids]
        lengths = np.array([len(own) for own in ids])
        tokens = int(lengths.sum())
        width = -(-tokens // TOKENS) * TOKENS
        if "position_ids" in rows[0]:
            places = [row["position_ids"] for row in rows]
        else:
            places = [self._places(own) for own in ids]
        inputs = {
            "input_ids": _row(ids, width, self.pad_id),
            "position_ids": _row(places, width, self.first_position),
            "lengths": torch.from_numpy(lengths),
            "host_lengths": tuple(lengths.tolist()),  # so that no step waits for a GPU's
        }
        if "token_type_ids" in rows[0]:
            types = [np.asarray(row["token_type_ids"], dtype=np.int64) for row in rows]
            inputs["token_type_ids"] = _row(types, width, 0)
        if "pair_mask" in rows[0]:
            pairs = np.concatenate([row["pair_mask"].ravel() for row in rows])
            inputs["pair_mask"] = torch.from_numpy(pairs)
        return Part(members, inputs, np.cumsum(lengths) - lengths)

    def _places(self, ids: np.ndarray) -> np.ndarray:
        """The number of each position, as the body counts when it is not told."""
        if not self.first_position:
            return np.arange(len(ids))
        # RoBERTa does not count tokens that equal the padding, wherever they are
        counted = ids != self.pad_id
        return np.where(counted, np.cumsum(counted), 0) + self.first_position - 1


def _row(values: Sequence[np.ndarray], width: int, filler: int) -> Tensor:
    """`values` one after the other, int64 `(1, width)`."""
    row = np.full(width, filler, dtype=np.int64)
    joined = np.concatenate(values)
    row[: len(joined)] = joined
    return torch.from_numpy(row)[None]


def split_by_length(
    lengths: Sequence[int], micro_batch_size: int, spare: int | None = None
) -> list[list[int]]:
    """Positions of a batch's examples in parts of at most `micro_batch_size`.

    Examples of similar length share a part, so that little is padding; which examples are in the
    batch is not changed, and neither is the gradient of the whole batch.

    Args:
        spare: padding that a part may hold; where one more example would make it more, another
            part begins. None makes as few parts as there can be [tokens].
    """
    ordered = _by_length(lengths)
    if spare is None:
        starts = range(0, len(ordered), micro_batch_size)
        return [ordered[start : start + micro_batch_size] for start in starts]
    parts: list[list[int]] = []
    padding = 0
    for position in reversed(ordered):
        if parts:
            padding += lengths[parts[-1][0]] - lengths[position]
        if not parts or len(parts[-1]) == micro_batch_size or padding > spare:
            parts.append([])
            padding = 0
        parts[-1].append(position)
    return [part[::-1] for part in reversed(parts)]


def split_by_tokens(lengths: Sequence[int], micro_batch_size: int) -> list[list[int]]:
    """Positions of a batch's examples in parts of about as many tokens each.

    A part holds at most `micro_batch_size` times the longest example's tokens, which bounds what a
    pass keeps. Examples of similar length share a part, so that attention has few sizes.
    """
    ordered = _by_length(lengths)
    sizes = np.maximum([lengths[position] for position in ordered], 1)
    middles = np.cumsum(sizes) - sizes / 2
    tokens, most = int(sizes.sum()), micro_batch_size * int(sizes.max())
    for parts in count(-(-tokens // most)):
        chosen = (middles * parts / tokens).astype(int)
        if np.bincount(chosen, weights=sizes).max() <= most:
            break
    return [
        [ordered[place] for place in np.flatnonzero(chosen == part)] for part in np.unique(chosen)
    ]


def _by_length(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda position: lengths[position])


def is_packed(inputs: Inputs) -> bool:
    """Whether a micro-batch of texts is one row of tokens."""
    return "lengths" in inputs


def spans(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Where each text begins, counted through all positions, and its length: `(examples,)` both."""
    if is_packed(inputs):
        lengths: Tensor = inputs["lengths"]
        return lengths.cumsum(0) - lengths, lengths
    mask: Tensor = inputs["attention_mask"]
    rows = torch.arange(len(mask), device=mask.device)
    return rows * mask.shape[1], mask.sum(dim=1)


def tokens_and_padding(parts: Sequence[MicroBatch]) -> tuple[int, int]:
    """Count the positions of the micro-batches that hold a token, and those that do not."""
    tokens = sum(int(spans(part.inputs)[1].sum()) for part in parts)
    return tokens, sum(positions_of(part) for part in parts) - tokens


def positions_of(part: MicroBatch) -> int:
    """Positions that go through the body; examples, where inputs are no text."""
    ids = part.inputs.get("input_ids")
    return part.examples if ids is None else int(ids.numel())
