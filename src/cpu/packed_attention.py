"""Attention within each of several texts that go through a body as one row of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from src.cpu.dropped_attention import has_tangent

WIDTHS = 8
"""Texts whose lengths have the same next multiple of this are attended to side by side."""

_CPU = torch.device("cpu")

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""From query, key and value `(texts, heads, width, size)`, and True where a position may be
attended to, to `(texts, width, heads, size)`."""


@dataclass(frozen=True)
class Block:
    """Texts side by side, each filled up to the longest of them.

    Attributes:
        texts: how many.
        width: length of the longest.
        held: whether a place holds a token, bool `(texts, width)`; None where all do.
        attends: row by column, which places of its text a place attends to, bool `(texts, width,
            width)`, in each row at least one; None where all attend to all.
    """

    texts: int
    width: int
    held: Tensor | None
    attends: Tensor | None = None

    def allowed(self, window: int | None, device: torch.device) -> Tensor | None:
        """True where a position may be attended to, broadcast to `(texts, 1, width, width)`.

        Args:
            window: positions so far apart, and farther, do not attend to each other. Where pairs
                are given it does not count, as in Transformers where a mask of pairs is given.
            device: where the tokens are.
        """
        if self.attends is not None:
            return self.attends[:, None]
        held = None if self.held is None else self.held[:, None, None]
        if window is None or self.width <= window:
            return held
        places = torch.arange(self.width, device=device)
        near = (places[:, None] - places).abs() < window
        return near[None, None] if held is None else held & near


class Packing:
    """Where the texts of one row of tokens are, and their places in blocks of like length.

    Only attention relates tokens to each other, so that all else of a body works on the row as it
    is. For attention the tokens are gathered into blocks, and what it gives is gathered back.

    Args:
        lengths: of the texts, in their order in the row, each at least 1.
        device: where the row is.
        attends: row by column, which tokens of its text a token attends to, at least one, bool
            `(pairs,)`: the pairs of one text after those of the other; None for all.

    Attributes:
        tokens: length of the row.
        blocks: in the order of the widths.
        used: whether anything has been attended to by it.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        device: torch.device = _CPU,
        attends: Tensor | None = None,
    ) -> None:
        self._device = device
        sizes = np.asarray(lengths, dtype=np.int64)
        ends, pair_ends = np.cumsum(sizes), np.cumsum(sizes**2)
        self.tokens = int(ends[-1])
        self.blocks: list[Block] = []
        sources, held = [], []
        steps = -(-sizes // WIDTHS)
        for step in np.unique(steps):
            members = np.flatnonzero(steps == step)
            own = sizes[members][:, None]
            places = np.arange(own.max())
            here = places < own
            starts = (ends - sizes)[members][:, None]
            tokens = np.minimum(places, own - 1)  # a place without a token is read as the last
            sources.append((starts + tokens).ravel())
            held.append(here.ravel())
            mask = None if here.all() else torch.from_numpy(here).to(device)
            allowed = None
            if attends is not None:
                before = (pair_ends - sizes**2)[members][:, None, None]
                pairs = before + (tokens * own)[:, :, None] + tokens[:, None]
                allowed = attends[torch.from_numpy(pairs).to(device)]
                allowed &= torch.from_numpy(here).to(device)[:, None]
            self.blocks.append(Block(len(members), int(own.max()), mask, allowed))
        self._sources, self._held = np.concatenate(sources), np.concatenate(held)
        self._of_tokens = _Moves.of(self._sources, self._held, self.tokens, device)
        self._of_heads: dict[int, _Moves] = {}
        self.used = False

    @property
    def pairs(self) -> int:
        """Number of pairs of places whose scores are computed, those of padding included."""
        return sum(block.texts * block.width**2 for block in self.blocks)

    def attend(
        self,
        attend: Attend,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        window: int | None = None,
    ) -> Tensor:
        """Let the tokens of each text attend to each other.

        Args:
            attend: attention over a block.
            query: `(1, heads, tokens, size)`, as are `key` and `value`.
            window: see `Block.allowed`.

        Returns:
            `(1, tokens, heads, size)`.
        """
        self.used = True
        queries, keys, values = (self._spread(tensor) for tensor in (query, key, value))
        found = [
            attend(q, k, v, block.allowed(window, self._device)).flatten(0, 1)
            for q, k, v, block in zip(queries, keys, values, self.blocks, strict=True)
        ]
        laid_out = torch.cat(found)
        collected = self._of_tokens.reverse.apply(laid_out.flatten(1))
        return collected.view(1, self.tokens, *laid_out.shape[1:])

    def _spread(self, tensor: Tensor) -> list[Tensor]:
        """Return `(1, heads, tokens, size)` as each block's `(texts, heads, width, size)`."""
        _, heads, tokens, size = tensor.shape
        rows = tensor[0].transpose(0, 1).reshape(tokens * heads, size)
        moved = self._moves_of(heads).apply(rows)
        parts = torch.split(moved, [block.texts * heads * block.width for block in self.blocks])
        return [
            part.view(block.texts, heads, block.width, size)
            for part, block in zip(parts, self.blocks, strict=True)
        ]

    def _moves_of(self, heads: int) -> _Moves:
        """Moves of `(tokens, heads)` to blocks of `(texts, heads, width)`."""
        if heads in self._of_heads:
            return self._of_heads[heads]
        sources, held, offset = [], [], 0
        for block in self.blocks:
            places = slice(offset, offset + block.texts * block.width)
            offset = places.stop
            shape = (block.texts, 1, block.width)
            own = self._sources[places].reshape(shape) * heads + np.arange(heads)[:, None]
            sources.append(own.ravel())
            held.append(np.broadcast_to(self._held[places].reshape(shape), own.shape).ravel())
        taken, here = np.concatenate(sources), np.concatenate(held)
        found = _Moves.of(taken, here, self.tokens * heads, self._device)
        self._of_heads[heads] = found
        return found


@dataclass(frozen=True)
class _Moves:
    """Rows taken from one tensor into another, and the way back.

    Attributes:
        taken: the row that each place takes, `(places,)`.
        empty: places that stay 0 instead.
        back: the place that each row is at, `(rows,)`.
        lost: rows that are at none.
    """

    taken: Tensor
    empty: Tensor
    back: Tensor
    lost: Tensor

    @classmethod
    def of(cls, taken: np.ndarray, held: np.ndarray, rows: int, device: torch.device) -> _Moves:
        """Each of `rows` is at one of the places that are `held`; the others stay 0."""
        back = np.empty(rows, dtype=np.int64)
        back[taken[held]] = np.flatnonzero(held)
        empty = np.flatnonzero(~held)
        places = (taken, empty, back, empty[:0])
        return cls(*(torch.from_numpy(each).to(device) for each in places))

    @property
    def reverse(self) -> _Moves:
        """The way back as the way there."""
        return _Moves(self.back, self.lost, self.taken, self.empty)

    def apply(self, rows: Tensor) -> Tensor:
        """Take `rows`, `(rows, ...)`, to their places, `(places, ...)`."""
        if has_tangent(rows):
            return rows.index_select(0, self.taken).index_fill(0, self.empty, 0)
        moved: Tensor = _Moved.apply(rows, self)  # type: ignore[no-untyped-call]
        return moved


class _Moved(torch.autograd.Function):
    """Both ways by reading rows: torch's own gradient would add them up one by one."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, moves: _Moves) -> Tensor:
        ctx.moves = moves
        return _taken(rows, moves.taken, moves.empty)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _taken(gradient, ctx.moves.back, ctx.moves.lost), None


def _taken(rows: Tensor, which: Tensor, empty: Tensor) -> Tensor:
    found = rows.index_select(0, which)
    return found.index_fill_(0, empty, 0) if len(empty) else found
