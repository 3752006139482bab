"""Runs backward passes in the numeric types of their forward passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tartan.core.mixed_precision import without_autocast


def backward(
    loss: Tensor, inputs: Sequence[Tensor] | None = None, *, retain_graph: bool = False
) -> None:
    """Add the gradient of `loss`, a scalar, to `.grad` of `inputs` (None: of all leaves).

    A training step runs inside autocast, under which torch would compute in 16 bits also those
    products of the backward pass whose forward pass was in float32.
    """
    with without_autocast(loss.device):
        torch.autograd.backward(loss, inputs=inputs, retain_graph=retain_graph)
