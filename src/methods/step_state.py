"""Undoing a step without asking the device whether it has to be undone."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class StepState:
    """What a step changes beside the parameters that the optimiser moves, as it was before.

    Weights of a weighting, a warm meta head, running statistics: after a step that is skipped they
    have to be what they were, and finding out whether it is must not wait for the device.
    """

    def __init__(self, modules: Iterable[nn.Module], parameters: Iterable[nn.Parameter]) -> None:
        held = [b for module in modules for b in module.buffers()] + list(parameters)
        self._held = [(tensor, tensor.detach().clone()) for tensor in held]

    @torch.no_grad()
    def restore_unless(self, finite: Tensor) -> None:
        """Put everything back where `finite`, a scalar boolean, is False."""
        for tensor, before in self._held:
            tensor.copy_(torch.where(finite, tensor, before))
