"""Dropout that draws its random numbers fast on a CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 2**16
"""Number of values that 16 random bits take; probabilities are rounded to multiples of 1/LEVELS."""


class FastDropout(nn.Dropout):
    """`nn.Dropout` that on a CPU uses 16 random bits for each element, four elements a draw.

    Torch draws 32 bits and more for each, which on a CPU can take a fifth of a training step. `p`
    is rounded to a multiple of 2^-16, and kept elements are scaled by the rounded probability, so
    that the mean stays. On other devices this is torch's own dropout.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`, of any shape, with elements zeroed with probability `p` in training."""
        if not self.training:
            return input
        if not fast_dropout_applies(input.device, self.p):
            return F.dropout(input, self.p)
        return input * dropout_factors(input.shape, self.p, input.dtype)


def fast_dropout_applies(device: torch.device, p: float) -> bool:
    """Return whether dropout of probability `p` on `device` needs `dropout_factors`.

    Elsewhere torch draws, and where none or all are dropped, nothing is drawn.
    """
    return device.type == "cpu" and _dropped_levels(p) not in (0, LEVELS)


def dropout_factors(shape: Sequence[int], p: float, dtype: torch.dtype) -> Tensor:
    """Draw factors on the CPU: 0 with probability `p`, otherwise the one that makes the mean 1."""
    dropped, count = _dropped_levels(p), math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(tuple(shape))
    kept = bits.ge(dropped - LEVELS // 2)
    return kept.to(dtype).mul_(LEVELS / (LEVELS - dropped))


def _dropped_levels(p: float) -> int:
    """Return for how many of the `LEVELS` values an element is zeroed."""
    return round(p * LEVELS)


def replace_dropout(module: nn.Module, kind: type[nn.Dropout]) -> None:
    """Replace every `nn.Dropout` and `FastDropout` inside `module` by a `kind`, in place."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Dropout) and type(child) in (nn.Dropout, FastDropout):
                setattr(parent, name, kind(child.p).train(child.training))
