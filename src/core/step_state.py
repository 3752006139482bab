"""A step that may turn out not to count, taken back without waiting for the device."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class StepState:
    """The state that a step changes, as it was before, for a step that may turn out not to count.

    Weights of a weighting, a meta head, running statistics: after a step that does not count they
    have to be what they were, and finding out whether it does must not wait for the device.
    """

    def __init__(self, modules: Iterable[nn.Module], parameters: Iterable[nn.Parameter]) -> None:
        held = [b for module in modules for b in module.buffers()] + list(parameters)
        self._held = [(tensor, tensor.detach().clone()) for tensor in held]

    @torch.no_grad()
    def restore_unless(self, counts: Tensor) -> None:
        """Put everything back where `counts`, a scalar boolean, is False."""
        for tensor, before in self._held:
            tensor.copy_(torch.where(counts, tensor, before))
