"""Gives each of several processes its share of every step's batches."""

from __future__ import annotations

from torch.utils.data import Dataset

from src.core.task import StepBatch
from src.data.batches import StepBatches
from src.distributed.shares import share_of


class SharedSteps(Dataset[StepBatch]):
    """A process's share of each step.

    Every process builds the whole batch and keeps some of its micro-batches. So each micro-batch is
    the same on any number of processes, dropout and masks included.

    Args:
        steps: the whole steps.
        rank: index of this process.
        count: number of processes.
        equally_often: whether all processes must pass equally many micro-batches of each task.
    """

    def __init__(
        self, steps: StepBatches, rank: int, count: int, equally_often: bool = False
    ) -> None:
        self._steps, self._rank, self._count = steps, rank, count
        self._equally_often = equally_often

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, step: int) -> StepBatch:
        return share_of(self._steps[step], self._rank, self._count, self._equally_often)
