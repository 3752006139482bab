"""Boundaries of the texts within one packed row of tokens on a GPU."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from tartan.cuda.kernels import Kernel, attend, kernel_for


class PackedRow:
    """Boundaries of a row's texts, and attention that stays within them.

    Args:
        lengths: lengths of the texts [tokens], in their order, on the host.
        on_device: the same lengths on the row's device, `(texts,)`. Positions of the row after the
            last text (padding) count as one more text.
        tokens: length of the row.

    Attributes:
        lengths: lengths of all texts, the padding's included.
        ends: first position of each text, then the end of the last one: int32, `(texts + 1,)`.
        tokens: length of the row.
        used: whether `attend` has been called.
    """

    def __init__(self, lengths: Sequence[int], on_device: Tensor, tokens: int) -> None:
        beyond = tokens - sum(lengths)
        self.lengths = [*lengths, beyond] if beyond else list(lengths)
        ends = F.pad(on_device.cumsum(0), (1, 0))
        self.ends = (F.pad(ends, (0, 1), value=tokens) if beyond else ends).to(torch.int32)
        self.tokens = tokens
        self.used = False

    @property
    def pairs(self) -> int:
        """Number of pairs of positions whose scores are computed, where there is no window."""
        return sum(length**2 for length in self.lengths)

    def kernel(self, query: Tensor, dropout: float, usable: Collection[Kernel]) -> Kernel | None:
        """Return the kernel for a `query` of the row, or None if no usable kernel supports it."""
        return kernel_for(_dtype_of(query), dropout, query.shape[-1], usable)

    def attend(
        self,
        kernel: Kernel,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        dropout: float,
        scale: float | None,
        window: int | None,
    ) -> Tensor:
        """Return the output of attention within each text, `(1, tokens, heads, size)`.

        Args:
            kernel: one that `kernel` returned.
            query: `(1, heads, tokens, size)`, as are `key` and `value`.
            dropout: as in `tartan.cuda.kernels.attend`, like `scale` and `window`.
        """
        self.used = True
        dtype = _dtype_of(query)
        queries, keys, values = (t[0].transpose(0, 1).to(dtype) for t in (query, key, value))
        found = attend(
            kernel, queries, keys, values, self.ends, max(self.lengths),
            dropout=dropout, scale=scale, window=window,
        )  # fmt: skip
        return found[None]


def _dtype_of(tensor: Tensor) -> torch.dtype:
    """Return the type that torch would compute attention in; the kernels ignore autocast."""
    kind = tensor.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return tensor.dtype
