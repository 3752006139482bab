"""Takes a training step without Lightning's Trainer, to compare it with other programs' steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from benchmarks.case import BuiltCase
from tartan.core.task import StepBatch
from tartan.methods.optimisation import prepare_update


class ManualStep:
    """Computes what `TaskMixing.training_step` does, on a case's module.

    Args:
        case: the case, whose module is moved to the device and trained.
        device: the device.
    """

    def __init__(self, case: BuiltCase, device: torch.device) -> None:
        self._case, self._device = case, device
        self.module = case.module.to(device)
        self._optimiser = self.module.new_optimiser()

    def step(self, batch: StepBatch) -> None:
        """Take one optimiser step."""
        with self._case.autocast(self._device):
            record = self.module.fill_gradients(batch)
        norm = self.module.gradient_norm(record)
        limit = self.module.optimisation.clip_norm
        prepare_update(self._optimiser, norm, limit, norm.isfinite())
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)

    def steps(self, batches: Sequence[StepBatch]) -> None:
        """Take a step on each of `batches`."""
        for batch in batches:
            self.step(batch)
