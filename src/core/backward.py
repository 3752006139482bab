"""Backward passes in the types of their forward passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def backward(
    loss: Tensor, inputs: Sequence[Tensor] | None = None, *, retain_graph: bool = False
) -> None:
    """Add the gradient of `loss`, a scalar, to `.grad` of `inputs` (None: of all leaves).

    Inside of autocast, where a training step is, torch would also compute those products in 16 bits
    that the forward pass computed in float32 for a reason; and it would convert their operands.
    """
    with torch.autocast(loss.device.type, enabled=False):
        torch.autograd.backward(loss, inputs=inputs, retain_graph=retain_graph)
