"""The cost of one more micro-batch, in tokens, by which a batch is split to save padding."""

from __future__ import annotations

import torch

from src.configuration.checks import check_whole
from src.errors import UserError

ON_A_CPU = 256
"""About what adding a part's gradient to the other parts' takes."""
ON_AN_ACCELERATOR = 8192
"""About what it takes to launch the kernels of one more forward and backward pass."""


def resolve_part_overhead(value: object, accelerator: str) -> int | None:
    """The number for `auto`, any other checked and returned; None: as few parts as there can be.

    Args:
        accelerator: Lightning's name; `auto` takes the GPU where there is one.

    Raises:
        UserError: not a number of tokens.
    """
    if value is None:
        return None
    if value == "auto":
        on_cpu = accelerator == "cpu" or not torch.accelerator.is_available()
        return ON_A_CPU if on_cpu else ON_AN_ACCELERATOR
    if isinstance(value, str):
        raise UserError(f"part_overhead must be auto, null or a whole number, got {value!r}")
    return check_whole(value, "part_overhead", least=0)
