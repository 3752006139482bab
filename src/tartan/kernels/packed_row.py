"""Attention within each text of a packed row, by blocks of texts or by a GPU's kernel."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tartan.core.device import is_cpu

WIDTH_MULTIPLE = 8
"""Texts whose lengths round up to the same multiple of this share a block."""

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Attention in a block: from query, key and value, `(texts, heads, width, size)`, and a mask, True
where a position may be attended to, to `(texts, width, heads, size)`."""


Kernel = Literal["varlen_attn", "flash_attn"]  # PyTorch's own has no dropout, flash-attn's has
_PLACES: dict[Kernel, tuple[str, str]] = {
    "varlen_attn": ("torch.nn.attention.varlen", "varlen_attn"),
    "flash_attn": ("flash_attn", "flash_attn_varlen_func"),
}
TYPES = (torch.bfloat16, torch.float16)


class PackedRow:
    """Bounds of the texts in a row of `tokens`, and attention that stays within them.

    `lengths` of the texts are on the host, and `on_device` again, `(texts,)`; further positions of
    the row (padding) count as one more text. `pair_mask` is True where the row's token attends to
    the column's, at least one: each text's matrix, flattened, one after another, `(pairs,)`; None
    where all tokens of a text attend to all. `used` says whether `attend` was called.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        on_device: Tensor,
        tokens: int,
        pair_mask: Tensor | None = None,
    ) -> None:
        beyond = tokens - sum(lengths)
        self.tokens, self.used = tokens, False
        self._lengths = [*lengths, beyond] if beyond else list(lengths)
        if beyond and pair_mask is not None:
            pair_mask = torch.cat([pair_mask, pair_mask.new_ones(beyond**2)])
        self._on_device, self._pair_mask = on_device, pair_mask

    @cached_property
    def blocks(self) -> Blocks:
        """The texts in blocks, made once for all layers."""
        return Blocks(self._lengths, self._on_device.device, self._pair_mask)

    @cached_property
    def ends(self) -> Tensor:
        """First position of each text, then the end of the last one: int32, `(texts + 1,)`."""
        lengths = self._on_device
        starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        if len(self._lengths) > len(lengths):
            starts = torch.cat([starts, starts.new_full((1,), self.tokens)])
        return starts.to(torch.int32)

    @property
    def pairs(self) -> int:
        """Number of pairs of positions whose scores are computed without a window."""
        if is_cpu(self._on_device.device):
            return sum(block.texts * block.width**2 for block in self.blocks.all)
        return sum(length**2 for length in self._lengths)

    def attend(
        self,
        in_block: Attend,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        dropout: float,
        scale: float | None,
        window: int | None,
    ) -> Tensor:
        """Return the output of attention within each text, `(1, tokens, heads, size)`.

        A GPU's kernel computes it, or, where none does (float32, masks of pairs), `in_block`, block
        by block. `query`, `key` and `value` are `(1, heads, tokens, size)`; for the others see
        `within_texts`. A `pair_mask` takes the place of `window`.
        """
        self.used = True
        dtype, kind = query.dtype, query.device.type
        usable = usable_kernels(kind) if self._pair_mask is None else ()
        # the type that torch would compute attention in; the kernels ignore autocast
        if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
        kernel = kernel_for(dtype, dropout, query.shape[-1], usable)
        if kernel is None:
            return self.blocks.attend(in_block, query, key, value, window)
        query, key, value = (t[0].transpose(0, 1).to(dtype) for t in (query, key, value))
        return within_texts(
            kernel, (query, key, value), self.ends, max(self._lengths),
            dropout=dropout, scale=scale, window=window,
        )[None]  # fmt: skip


def kernel_for(
    dtype: torch.dtype, dropout: float, head_size: int, usable: Collection[Kernel]
) -> Kernel | None:
    """Return the kernel for attention of this kind, or None if no `usable` one supports it."""
    if dtype not in TYPES or head_size % 8 or head_size > 256:
        return None
    if "varlen_attn" in usable and not dropout:
        return "varlen_attn"
    return "flash_attn" if "flash_attn" in usable else None


@cache
def usable_kernels(device: str = "cuda") -> tuple[Kernel, ...]:
    """Return the kernels that the packages and a GPU (`cuda`, Ampere or newer) support."""
    if device != "cuda" or not torch.cuda.is_available() or torch.version.cuda is None:
        return ()
    if torch.cuda.get_device_capability() < (8, 0):
        return ()
    return tuple(kernel for kernel in _PLACES if _function(kernel) is not None)


def within_texts(
    kernel: Kernel,
    inputs: tuple[Tensor, Tensor, Tensor],
    ends: Tensor,
    longest: int,
    *,
    dropout: float,
    scale: float | None,
    window: int | None,
) -> Tensor:
    """Return the output of attention within each text, `(tokens, heads, size)`.

    `inputs` are query, key and value, of the same shape, `ends` the first position of each text,
    then the end of the last one, int32 `(texts + 1,)`. `scale` None is one over the root of `size`;
    positions `window` apart or farther do not attend to each other.
    """
    options: dict[str, Any] = {"window_size": (-1, -1) if window is None else (window - 1,) * 2}
    if kernel == "varlen_attn":
        options |= {"scale": scale}
    else:
        # otherwise the queries' gradient is summed in the order in which threads finish
        options |= {"dropout_p": dropout, "softmax_scale": scale, "deterministic": True}
    function = _function(kernel)
    assert function is not None, "only usable kernels are chosen"
    attended: Tensor = function(*inputs, ends, ends, longest, longest, **options)
    return attended


@cache
def _function(kernel: Kernel) -> Callable[..., Any] | None:
    place, name = _PLACES[kernel]
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(place), name)
    except ImportError:  # also where flash-attn was built for another torch
        return None
    logging.getLogger(place).setLevel(logging.WARNING)  # torch logs its backend at every call
    return function


@dataclass(frozen=True)
class Block:
    """Texts that are padded to the longest of them."""

    texts: int
    width: int
    token_mask: Tensor | None  # True where a position holds a token, `(texts, width)`; None: all
    pair_mask: Tensor | None = None  # as that of `PackedRow`, `(texts, width, width)`

    def allowed(self, window: int | None, device: torch.device) -> Tensor | None:
        """Return where positions may be attended to, for `(texts, 1, width, width)`; None: all."""
        if self.pair_mask is not None:
            return self.pair_mask[:, None]
        tokens = None if self.token_mask is None else self.token_mask[:, None, None]
        if window is None or self.width <= window:
            return tokens
        positions = torch.arange(self.width, device=device)
        near = (positions[:, None] - positions).abs() < window
        return near[None, None] if tokens is None else tokens & near


class Blocks:
    """Arranges a row's tokens into blocks of texts of similar length, `all`, and back."""

    def __init__(
        self, lengths: Sequence[int], device: torch.device, pair_mask: Tensor | None = None
    ) -> None:
        self._device = device
        sizes = np.asarray(lengths, dtype=np.int64)
        ends, pair_ends = np.cumsum(sizes), np.cumsum(sizes**2)
        self._tokens = int(ends[-1])
        self.all: list[Block] = []
        sources, filled = [], []
        multiples = -(-sizes // WIDTH_MULTIPLE)
        for multiple in np.unique(multiples):
            members = np.flatnonzero(multiples == multiple)
            widths = sizes[members][:, None]
            positions = np.arange(widths.max())
            is_token = positions < widths
            starts = (ends - sizes)[members][:, None]
            tokens = np.minimum(positions, widths - 1)  # padding is read as the last token
            sources.append((starts + tokens).ravel())
            filled.append(is_token.ravel())
            token_mask = None if is_token.all() else torch.from_numpy(is_token).to(device)
            block_pairs = None
            if pair_mask is not None:
                pair_starts = (pair_ends - sizes**2)[members][:, None, None]
                pairs = pair_starts + (tokens * widths)[:, :, None] + tokens[:, None]
                block_pairs = pair_mask[torch.from_numpy(pairs).to(device)]
                block_pairs &= torch.from_numpy(is_token).to(device)[:, None]
            self.all.append(Block(len(members), int(widths.max()), token_mask, block_pairs))
        at_tokens, is_filled = np.concatenate(sources), np.concatenate(filled)
        at_places = np.empty(self._tokens, dtype=np.int64)
        at_places[at_tokens[is_filled]] = np.flatnonzero(is_filled)
        # what each place takes, which places are 0 instead, and where each token's place is
        self._sources, self._empty, self._places = (
            torch.from_numpy(indices).to(device)
            for indices in (at_tokens, np.flatnonzero(~is_filled), at_places)
        )

    def attend(
        self, in_block: Attend, query: Tensor, key: Tensor, value: Tensor, window: int | None
    ) -> Tensor:
        """Compute attention block by block, `(1, tokens, heads, size)`."""
        queries, keys, values = (self._by_block(tensor) for tensor in (query, key, value))
        attended = [
            in_block(q, k, v, block.allowed(window, self._device)).flatten(0, 1)
            for q, k, v, block in zip(queries, keys, values, self.all, strict=True)
        ]
        nothing = self._empty[:0]
        return _rearranged(
            torch.cat(attended), (self._places, nothing), (self._sources, self._empty)
        )[None]

    def _by_block(self, tensor: Tensor) -> list[Tensor]:
        """Return `(1, heads, tokens, size)` as each block's `(texts, heads, width, size)`."""
        rows, nothing = tensor[0].transpose(0, 1), self._empty[:0]
        arranged = _rearranged(rows, (self._sources, self._empty), (self._places, nothing))
        parts = torch.split(arranged, [block.texts * block.width for block in self.all])
        return [
            part.view(block.texts, block.width, *part.shape[1:]).transpose(1, 2)
            for part, block in zip(parts, self.all, strict=True)
        ]


Places = tuple[Tensor, Tensor]
"""Index of the row that each place takes, `(places,)`, and of the places that are 0 instead."""


def _rearranged(rows: Tensor, there: Places, back: Places) -> Tensor:
    """Return `rows`, `(rows, ...)`, at their places, `(places, ...)`."""
    arranged: Tensor = _Rearrange.apply(rows, there, back)  # type: ignore[no-untyped-call]
    return arranged


class _Rearrange(torch.autograd.Function):
    """Gathers rows in both passes: the gradient of torch's `index_select` adds rows one by one."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Places, back: Places) -> Tensor:
        ctx.back = back
        return _gathered(rows, *there)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _gathered(gradient, *ctx.back), None, None


def _gathered(rows: Tensor, sources: Tensor, empty: Tensor) -> Tensor:
    gathered = rows.index_select(0, sources)
    return gathered.index_fill_(0, empty, 0) if len(empty) else gathered
