"""Attention within each text of a packed row, computed in blocks of texts of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tartan.cpu.dropout_attention import has_tangent

WIDTH_MULTIPLE = 8
"""Texts whose lengths round up to the same multiple of this share a block."""

_CPU = torch.device("cpu")

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Attention in a block: from query, key and value, `(texts, heads, width, size)`, and a mask, True
where a position may be attended to, to `(texts, width, heads, size)`."""


@dataclass(frozen=True)
class Block:
    """Texts that are padded to the longest of them.

    Attributes:
        texts: number of texts.
        width: length of the longest text [tokens].
        token_mask: True where a position holds a token, bool `(texts, width)`; None where all do.
        pair_mask: True where the position of the row attends to that of the column, bool `(texts,
            width, width)`, with a True in each row; None where all attend to all.
    """

    texts: int
    width: int
    token_mask: Tensor | None
    pair_mask: Tensor | None = None

    def allowed(self, window: int | None, device: torch.device) -> Tensor | None:
        """Return a mask, True where a position may be attended to; None where all may be.

        Args:
            window: positions this far apart, or farther, do not attend to each other. Ignored where
                there is a `pair_mask`, as Transformers does with a mask of pairs [tokens].
            device: device of the tokens.

        Returns:
            A mask that broadcasts to `(texts, 1, width, width)`.
        """
        if self.pair_mask is not None:
            return self.pair_mask[:, None]
        tokens = None if self.token_mask is None else self.token_mask[:, None, None]
        if window is None or self.width <= window:
            return tokens
        positions = torch.arange(self.width, device=device)
        near = (positions[:, None] - positions).abs() < window
        return near[None, None] if tokens is None else tokens & near


class Packing:
    """Knows the texts of a packed row, and arranges their tokens into blocks for attention.

    Only attention relates tokens to each other; the rest of a body works on the row as it is. For
    attention the tokens are gathered into blocks, and its output is gathered back into the row.

    Args:
        lengths: lengths of the texts, in their order in the row, each at least 1 [tokens].
        device: device of the row.
        pair_mask: True where the token of the row attends to that of the column, bool `(pairs,)`:
            each text's matrix, flattened, one text after another. Each token attends to at least
            one. None where all tokens of a text attend to all.

    Attributes:
        tokens: length of the row [tokens].
        blocks: the blocks, narrow ones first.
        used: whether `attend` was called.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        device: torch.device = _CPU,
        pair_mask: Tensor | None = None,
    ) -> None:
        self._device = device
        sizes = np.asarray(lengths, dtype=np.int64)
        ends, pair_ends = np.cumsum(sizes), np.cumsum(sizes**2)
        self.tokens = int(ends[-1])
        self.blocks: list[Block] = []
        sources, filled = [], []
        multiples = -(-sizes // WIDTH_MULTIPLE)
        for multiple in np.unique(multiples):
            members = np.flatnonzero(multiples == multiple)
            own_sizes = sizes[members][:, None]
            positions = np.arange(own_sizes.max())
            is_token = positions < own_sizes
            starts = (ends - sizes)[members][:, None]
            tokens = np.minimum(positions, own_sizes - 1)  # padding is read as the last token
            sources.append((starts + tokens).ravel())
            filled.append(is_token.ravel())
            token_mask = None if is_token.all() else torch.from_numpy(is_token).to(device)
            own_pairs = None
            if pair_mask is not None:
                pair_starts = (pair_ends - sizes**2)[members][:, None, None]
                pairs = pair_starts + (tokens * own_sizes)[:, :, None] + tokens[:, None]
                own_pairs = pair_mask[torch.from_numpy(pairs).to(device)]
                own_pairs &= torch.from_numpy(is_token).to(device)[:, None]
            self.blocks.append(Block(len(members), int(own_sizes.max()), token_mask, own_pairs))
        self._sources, self._filled = np.concatenate(sources), np.concatenate(filled)
        self._of_tokens = _Rearrangement.of(self._sources, self._filled, self.tokens, device)
        self._of_heads: dict[int, _Rearrangement] = {}
        self.used = False

    @property
    def pairs(self) -> int:
        """Number of pairs of positions whose scores are computed, padding included."""
        return sum(block.texts * block.width**2 for block in self.blocks)

    def attend(
        self,
        attend: Attend,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        window: int | None = None,
    ) -> Tensor:
        """Compute attention within each text.

        Args:
            attend: computes attention in a block.
            query: `(1, heads, tokens, size)`, as are `key` and `value`.
            window: see `Block.allowed`.

        Returns:
            The attended values, `(1, tokens, heads, size)`.
        """
        self.used = True
        queries, keys, values = (self._by_block(tensor) for tensor in (query, key, value))
        attended = [
            attend(q, k, v, block.allowed(window, self._device)).flatten(0, 1)
            for q, k, v, block in zip(queries, keys, values, self.blocks, strict=True)
        ]
        in_blocks = torch.cat(attended)
        in_row = self._of_tokens.inverse.apply(in_blocks.flatten(1))
        return in_row.view(1, self.tokens, *in_blocks.shape[1:])

    def _by_block(self, tensor: Tensor) -> list[Tensor]:
        """Return `(1, heads, tokens, size)` as each block's `(texts, heads, width, size)`."""
        _, heads, tokens, size = tensor.shape
        rows = tensor[0].transpose(0, 1).reshape(tokens * heads, size)
        arranged = self._of_token_heads(heads).apply(rows)
        parts = torch.split(arranged, [block.texts * heads * block.width for block in self.blocks])
        return [
            part.view(block.texts, heads, block.width, size)
            for part, block in zip(parts, self.blocks, strict=True)
        ]

    def _of_token_heads(self, heads: int) -> _Rearrangement:
        """Return the rearrangement of `(tokens, heads)` to blocks of `(texts, heads, width)`."""
        if heads in self._of_heads:
            return self._of_heads[heads]
        sources, filled, offset = [], [], 0
        for block in self.blocks:
            positions = slice(offset, offset + block.texts * block.width)
            offset = positions.stop
            shape = (block.texts, 1, block.width)
            own = self._sources[positions].reshape(shape) * heads + np.arange(heads)[:, None]
            sources.append(own.ravel())
            own_filled = self._filled[positions].reshape(shape)
            filled.append(np.broadcast_to(own_filled, own.shape).ravel())
        found = _Rearrangement.of(
            np.concatenate(sources), np.concatenate(filled), self.tokens * heads, self._device
        )
        self._of_heads[heads] = found
        return found


@dataclass(frozen=True)
class _Rearrangement:
    """Copies the rows of one tensor to places in another; knows its inverse.

    Attributes:
        sources: index of the row that each place takes, `(places,)`.
        empty: indices of the places that are filled with 0 instead.
        targets: index of the place that takes each row, `(rows,)`.
        unplaced: indices of the rows that no place takes, which the inverse fills with 0.
    """

    sources: Tensor
    empty: Tensor
    targets: Tensor
    unplaced: Tensor

    @classmethod
    def of(
        cls, sources: np.ndarray, filled: np.ndarray, rows: int, device: torch.device
    ) -> _Rearrangement:
        """Return the one that takes each of `rows` to one place that is `filled`."""
        targets = np.empty(rows, dtype=np.int64)
        targets[sources[filled]] = np.flatnonzero(filled)
        empty = np.flatnonzero(~filled)
        indices = (sources, empty, targets, empty[:0])
        return cls(*(torch.from_numpy(each).to(device) for each in indices))

    @property
    def inverse(self) -> _Rearrangement:
        """The rearrangement of places to rows."""
        return _Rearrangement(self.targets, self.unplaced, self.sources, self.empty)

    def apply(self, rows: Tensor) -> Tensor:
        """Return `rows`, `(rows, ...)`, at their places, `(places, ...)`."""
        if has_tangent(rows):
            return rows.index_select(0, self.sources).index_fill(0, self.empty, 0)
        arranged: Tensor = _Rearrange.apply(rows, self)  # type: ignore[no-untyped-call]
        return arranged


class _Rearrange(torch.autograd.Function):
    """Gathers rows in both passes: the gradient of torch's `index_select` adds rows one by one."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, rearrangement: _Rearrangement) -> Tensor:
        ctx.rearrangement = rearrangement
        return _gathered(rows, rearrangement.sources, rearrangement.empty)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        rearrangement: _Rearrangement = ctx.rearrangement
        return _gathered(gradient, rearrangement.targets, rearrangement.unplaced), None


def _gathered(rows: Tensor, sources: Tensor, empty: Tensor) -> Tensor:
    found = rows.index_select(0, sources)
    return found.index_fill_(0, empty, 0) if len(empty) else found
