"""The cost of one more micro-batch, in tokens, by which a batch is split to save padding."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from src.configuration.options import Natural, checked

PartOverhead: TypeAlias = Natural | Literal["auto"] | None
ON_A_CPU = 256
"""About what adding a part's gradient to the other parts' takes."""
ON_AN_ACCELERATOR = 8192
"""About what it takes to launch the kernels of one more forward and backward pass."""


@checked
def resolve_part_overhead(part_overhead: PartOverhead, accelerator: str) -> int | None:
    """The number for `auto`, any other checked and returned; None: as few parts as there can be.

    Args:
        accelerator: Lightning's name; `auto` takes the GPU where there is one.

    Raises:
        UserError: not a number of tokens.
    """
    if part_overhead == "auto":
        on_cpu = accelerator == "cpu" or not torch.accelerator.is_available()
        return ON_A_CPU if on_cpu else ON_AN_ACCELERATOR
    return part_overhead
