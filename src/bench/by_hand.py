"""Our step without Lightning around it, for comparisons with steps that have none either."""

from __future__ import annotations

import torch
from torch import nn

from src.bench.case import BuiltCase
from src.core.step import mixed_gradients
from src.data.batches import StepBatch


def _reseed(name: str, part: int) -> None:
    torch.manual_seed(part)


class OurStep:
    """What `TaskMixing.training_step` computes, on a case's own module."""

    def __init__(self, case: BuiltCase, device: torch.device) -> None:
        self._case, self._device = case, device
        self.module = case.module.to(device)
        module = self.module
        heads = [task.head for task in module.tasks]
        end, others = (heads[0], heads[1:]) if module.end_task is not None else (None, heads)
        self._optimiser = module.optimisation.optimiser(module.body, end, others)

    def step(self, batch: StepBatch) -> None:
        """One optimiser step."""
        module = self.module
        with self._case.autocast(self._device):
            mixed_gradients(
                module.body,
                module.tasks,
                batch.tasks,
                module.weighting,
                reseed=_reseed,
                meta_head=module.meta_head,
                meta_batch=batch.meta,
            )
        limit = module.optimisation.clip_norm
        if limit is not None:
            nn.utils.clip_grad_norm_(module.trained_parameters(), limit)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
