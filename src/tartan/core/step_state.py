"""Restores what a step changed if its numbers were not finite, without waiting for the device."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class StepState:
    """A copy of what a step changes, to undo a step with non-finite numbers.

    These are buffers of modules, such as a weighting's weights and running statistics, whether a
    step changes them in place or assigns new ones, and parameters of the meta head. Whether to
    restore them is decided on the device, so that the host does not wait.

    Args:
        modules: modules whose buffers are copied.
        parameters: parameters that are copied.
    """

    def __init__(self, modules: Iterable[nn.Module], parameters: Iterable[nn.Parameter]) -> None:
        owners = [owner for module in modules for owner in module.modules()]
        self._buffers = [
            (owner, name, buffer.detach().clone())
            for owner in owners
            for name, buffer in owner.named_buffers(recurse=False)
        ]
        self._parameters = [(parameter, parameter.detach().clone()) for parameter in parameters]

    @torch.no_grad()
    def restore_unless(self, counts: Tensor) -> None:
        """Restore everything where `counts`, a scalar boolean, is False."""
        for owner, name, before in self._buffers:
            now = getattr(owner, name)
            now.copy_(torch.where(counts, now, before))
        for parameter, before in self._parameters:
            parameter.copy_(torch.where(counts, parameter, before))
