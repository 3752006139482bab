"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 2**16
"""Sixteen random bits decide on an element: probabilities are multiples of one in this many."""


class CheapDropout(nn.Dropout):
    """`nn.Dropout` with 16 random bits an element, four elements a draw, where a CPU draws them.

    Torch's own draws 32 bits an element and more, which on a CPU can be a fifth of a training step.
    `p` is rounded to a multiple of 2^-16, and what is kept is scaled accordingly, so that the mean
    stays. Elsewhere it is torch's own.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Elements of `input`, any shape, zeroed with probability `p`, the others scaled."""
        return cheap_dropout(input, self.p) if self.training else input


def cheap_dropout(input: Tensor, p: float) -> Tensor:
    """See `CheapDropout`; elements of `input` are zeroed with probability `p`."""
    if not draws_cheaply(input.device, p):
        return F.dropout(input, p)
    return input * drawn_factors(input.shape, p, input.dtype)


def draws_cheaply(device: torch.device, p: float) -> bool:
    """Whether something has to be drawn there, and `drawn_factors` draws it."""
    return device.type == "cpu" and _dropped(p) not in (0, LEVELS)


def drawn_factors(shape: Sequence[int], p: float, dtype: torch.dtype) -> Tensor:
    """Factors on the CPU: 0 with probability `p`, else as much as makes the mean 1."""
    dropped, count = _dropped(p), math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[:count].view(tuple(shape))
    kept = bits.ge(dropped - LEVELS // 2)
    return kept.to(dtype).mul_(LEVELS / (LEVELS - dropped))


def _dropped(p: float) -> int:
    """Of `LEVELS`, those that zero an element."""
    return round(p * LEVELS)


def use_dropout(module: nn.Module, kind: type[nn.Dropout]) -> None:
    """Put a `kind` in the place of every `nn.Dropout` or `CheapDropout` inside `module`."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Dropout) and type(child) in (nn.Dropout, CheapDropout):
                setattr(parent, name, kind(child.p).train(child.training))
