"""The iterable that a Trainer takes as its loader, over batches that are functions of the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler

from src.core.task import StepBatch
from src.data.batches import StepBatches


class StepLoader:
    """Yields an epoch's batches, from the step that is next when the first one is asked for.

    It is not a `DataLoader`, because Lightning would exchange the sampler of one
    (`overfit_batches`, several processes): here each process builds every step and keeps its share
    of it.

    Args:
        batches: the batches, indexed by step; as many as an epoch has.
        next_step: returns the next step.
        options: options of the `DataLoader` that builds the batches.
    """

    def __init__(self, batches: StepBatches, next_step: Callable[[], int], **options: Any) -> None:
        self._next_step, self._order = next_step, _FromStep(len(batches))
        # a generator of its own: a DataLoader draws a seed, here from the program's otherwise
        self._loader: DataLoader[StepBatch] = DataLoader(
            batches, batch_size=None, sampler=self._order, generator=torch.Generator(), **options
        )

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[StepBatch]:
        # Lightning asks for an iterator before it has restored its step, and for batches afterwards
        self._order.first = self._next_step()
        yield from self._loader

    def state_dict(self) -> dict[str, int]:
        """Return the state that Lightning puts into its checkpoints."""
        return {"step": self._next_step()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Do nothing: the Trainer restores its own step, from which the next batch follows."""


class _FromStep(Sampler[int]):
    """Samples the indices `first`, `first + 1`, ... of one epoch's steps."""

    def __init__(self, steps: int) -> None:
        self.steps, self.first = steps, 0

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.first + self.steps))
