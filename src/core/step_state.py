"""Restores what a step changed if its numbers were not finite, without waiting for the device."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class StepState:
    """A copy of what a step changes, to undo a step with non-finite numbers.

    These are buffers of modules, such as a weighting's weights and running statistics, and
    parameters of the meta head. Whether to restore them is decided on the device, so that the host
    does not wait.

    Args:
        modules: modules whose buffers are copied.
        parameters: parameters that are copied.
    """

    def __init__(self, modules: Iterable[nn.Module], parameters: Iterable[nn.Parameter]) -> None:
        held = [b for module in modules for b in module.buffers()] + list(parameters)
        self._held = [(tensor, tensor.detach().clone()) for tensor in held]

    @torch.no_grad()
    def restore_unless(self, counts: Tensor) -> None:
        """Restore everything where `counts`, a scalar boolean, is False."""
        for tensor, before in self._held:
            tensor.copy_(torch.where(counts, tensor, before))
