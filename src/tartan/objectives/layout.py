"""Splits a batch of texts into parts, packed or padded, which become micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tartan.core.task import Batch, Inputs, MicroBatch
from tartan.encoders.text_encoder import TextEncoder

ROW_MULTIPLE = 32
"""Packed rows are padded to multiples of this length: on a CPU, oneDNN builds kernels for each new
shape of a matrix product, 15 ms for one linear layer in 16 bits [tokens].
"""
WIDTH_MULTIPLE = 8
"""The same for the widths of padded batches; kernels of GPUs are fastest there, too [tokens]."""
MAX_PADDING_ON_CPU = 256
"""Padding that costs about as much on a CPU as one more part [tokens]."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Predicted:
    """A text with targets: `read_at` are positions whose states predict `targets`, `(n,)` both."""

    tokens: np.ndarray  # token ids, `(tokens,)`
    inputs: Mapping[str, Any]  # the body's other inputs (see `Layout.parts`)
    read_at: np.ndarray
    targets: np.ndarray
    length: int | None = None  # by which a batch is split, if not the number of tokens


@dataclass(frozen=True)
class Layout:
    """Splits batches of texts, and makes the body's inputs of each part."""

    pad_id: int
    micro_batch_size: int  # most examples of a part; of a packed one see `split_by_tokens`
    packed: bool = False  # whether texts are packed into one row of tokens
    first_position: int = 0  # position id of a text's first token
    max_positions: int | None = None  # longest input of the body [tokens]
    max_padding: int | None = None  # see `split_by_length`

    @classmethod
    def of(
        cls,
        encoder: TextEncoder,
        micro_batch_size: int,
        packed: bool = False,
        on_cpu: bool = False,
        training: bool = True,
    ) -> Layout:
        """Return the layout of an encoder's batches, the same in and out of training."""
        return cls(
            pad_id=int(encoder.tokenizer.pad_token_id),
            micro_batch_size=micro_batch_size,
            packed=packed and encoder.supports_packing,
            first_position=encoder.first_position,
            max_positions=encoder.max_positions,
            max_padding=MAX_PADDING_ON_CPU if on_cpu else None,
        )

    def parts(
        self, rows: Rows, token_ids: Sequence[np.ndarray], lengths: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], dict[str, Any]]]:
        """Yield the parts of a batch of texts: the indices of its texts, and the body's inputs.

        It is split by `lengths`, or the numbers of tokens. Of `rows`, these columns are used where
        they exist: `token_type_ids`; `position_ids`, if they differ from the body's own;
        `pair_mask`, if not all tokens attend to all: True where the token of the row attends to
        that of the column, bool `(tokens, tokens)`.
        """
        if lengths is None:
            lengths = [len(ids) for ids in token_ids]
        if self.packed:
            split, make = split_by_tokens(lengths, self.micro_batch_size), self._packed
        else:
            split = split_by_length(lengths, self.micro_batch_size, self.max_padding)
            make = self._padded
        for members in split:
            yield members, make([rows[i] for i in members], [token_ids[i] for i in members])

    def _padded(self, rows: Rows, ids: Sequence[np.ndarray]) -> dict[str, Any]:
        width = padded_width(ids, self.max_positions)
        inputs = pad(ids, self.pad_id, width)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        for name, filler in (("token_type_ids", 0), ("position_ids", self.first_position)):
            if name in columns:
                inputs[name] = _rows(columns[name], filler, width)
        if "pair_mask" in columns:
            # padding attends to the first position, as each position has to attend to one
            pairs = np.zeros((len(rows), width, width), dtype=bool)
            pairs[:, :, 0] = True
            for pair, mask in zip(pairs, columns["pair_mask"], strict=True):
                pair[: len(mask), : len(mask)] = mask
            inputs["pair_mask"] = torch.from_numpy(pairs)
        return inputs

    def _packed(self, rows: Rows, ids: Sequence[np.ndarray]) -> dict[str, Any]:
        # objectives read the state of a text's first token, so an empty text gets a padding token
        ids = [tokens if len(tokens) else np.array([self.pad_id]) for tokens in ids]
        lengths = np.array([len(tokens) for tokens in ids])
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        width = -(-int(lengths.sum()) // ROW_MULTIPLE) * ROW_MULTIPLE

        def row_of(values: Sequence[np.ndarray], filler: int) -> Tensor:
            return _rows([np.concatenate(values)], filler, width)

        positions = [self._position_ids(tokens) for tokens in ids]
        inputs = {
            "input_ids": row_of(ids, self.pad_id),
            "position_ids": row_of(columns.get("position_ids", positions), self.first_position),
            "lengths": torch.from_numpy(lengths),
            "host_lengths": tuple(lengths.tolist()),  # so that no step has to wait for a GPU
        }
        if "token_type_ids" in columns:
            inputs["token_type_ids"] = row_of(columns["token_type_ids"], 0)
        if "pair_mask" in columns:
            pairs = np.concatenate([mask.ravel() for mask in columns["pair_mask"]])
            inputs["pair_mask"] = torch.from_numpy(pairs)
        return inputs

    def _position_ids(self, ids: np.ndarray) -> np.ndarray:
        if not self.first_position:
            return np.arange(len(ids))
        # RoBERTa does not count padding tokens, even within a text
        counted = ids != self.pad_id
        return np.where(counted, np.cumsum(counted), 0) + self.first_position - 1


def labelled_batch(
    layout: Layout,
    rows: Rows,
    token_ids: Sequence[np.ndarray],
    **columns: Sequence[Any] | np.ndarray,
) -> Batch:
    """Return the batch of texts as units; `columns` are further inputs: a value for each row."""
    made = []
    for members, inputs in layout.parts(rows, token_ids):
        chosen = {name: torch.tensor([v[i] for i in members]) for name, v in columns.items()}
        made.append(MicroBatch({**inputs, **chosen}, len(members), len(members)))
    return Batch(made, len(rows), *count_tokens_and_padding(made))


def predicted_batch(layout: Layout, texts: Sequence[Predicted]) -> Batch:
    """Return the batch of an objective whose units are positions, without parts that have none."""
    made = []
    tokens = [text.tokens for text in texts]
    lengths = [len(text.tokens) if text.length is None else text.length for text in texts]
    for indices, inputs in layout.parts([text.inputs for text in texts], tokens, lengths):
        members = [texts[i] for i in indices]
        units = sum(len(text.targets) for text in members)
        if not units:
            continue
        starts = spans(inputs)[0].tolist()
        places = [start + text.read_at for start, text in zip(starts, members, strict=True)]
        inputs["positions"] = torch.from_numpy(np.concatenate(places))
        inputs["targets"] = torch.from_numpy(np.concatenate([text.targets for text in members]))
        made.append(MicroBatch(inputs, units=units, examples=len(members)))
    return Batch(made, len(texts), *count_tokens_and_padding(made))


def pad(
    token_ids: Sequence[np.ndarray], pad_id: int, width: int | None = None
) -> dict[str, Tensor]:
    """Return `input_ids` and `attention_mask`, int64 `(examples, width)`, or as wide as needed."""
    width = width or max(map(len, token_ids))
    ones = [np.ones(len(ids), dtype=np.int64) for ids in token_ids]
    return {"input_ids": _rows(token_ids, pad_id, width), "attention_mask": _rows(ones, 0, width)}


def padded_width(token_ids: Sequence[np.ndarray], max_positions: int | None) -> int:
    """Return the longest example's length, rounded up as far as the body's positions go."""
    longest = max(len(ids) for ids in token_ids)
    width = -(-longest // WIDTH_MULTIPLE) * WIDTH_MULTIPLE
    return width if max_positions is None else max(longest, min(width, max_positions))


def _rows(values: Sequence[np.ndarray], filler: int, width: int) -> Tensor:
    padded = np.full((len(values), width), filler, dtype=np.int64)
    for row, value in zip(padded, values, strict=True):
        row[: len(value)] = value
    return torch.from_numpy(padded)


def split_by_length(
    lengths: Sequence[int], micro_batch_size: int, max_padding: int | None = None
) -> list[list[int]]:
    """Return parts of at most `micro_batch_size` examples of similar lengths, as their indices."""
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__)
    if max_padding is None:
        starts = range(0, len(ordered), micro_batch_size)
        return [ordered[start : start + micro_batch_size] for start in starts]
    parts: list[list[int]] = []
    padding = 0
    for position in reversed(ordered):
        if parts:
            padding += lengths[parts[-1][0]] - lengths[position]
        if not parts or len(parts[-1]) == micro_batch_size or padding > max_padding:
            parts.append([])
            padding = 0
        parts[-1].append(position)
    return [part[::-1] for part in reversed(parts)]


def split_by_tokens(lengths: Sequence[int], micro_batch_size: int) -> list[list[int]]:
    """Return parts of about equally many tokens and of similar lengths, as their indices."""
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__)
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


def is_packed(inputs: Inputs) -> bool:
    """Return whether a micro-batch of texts is packed."""
    return "lengths" in inputs


def spans(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return each text's first position, of all flattened, and its length: `(examples,)` both."""
    if is_packed(inputs):
        lengths: Tensor = inputs["lengths"]
        return lengths.cumsum(0) - lengths, lengths
    mask: Tensor = inputs["attention_mask"]
    rows = torch.arange(len(mask), device=mask.device)
    return rows * mask.shape[1], mask.sum(dim=1)


def count_tokens_and_padding(parts: Sequence[MicroBatch]) -> tuple[int, int]:
    """Count the positions of micro-batches that hold tokens, and those that hold padding."""
    tokens = sum(int(spans(part.inputs)[1].sum()) for part in parts)
    return tokens, sum(part.positions for part in parts) - tokens
