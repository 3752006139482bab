"""Divides one batch among the auxiliary tasks that a step samples, by their weights."""

from __future__ import annotations

from dataclasses import replace

from src.core.task import StepBatch
from src.core.weighting.base import Weighting
from src.distributed.shares import share_of


def with_sampled_batches(
    batch: StepBatch,
    weighting: Weighting,
    total: int,
    rank: int = 0,
    count: int = 1,
    equally_often: bool = False,
) -> StepBatch:
    """Return the step with a batch for each task that it samples.

    Every process makes the whole batches, from the same weights, and keeps its share of them.

    Args:
        batch: the step, whose sampled tasks are `unsized`.
        weighting: decides how many of the `total` examples each task gets.
        total: number of examples that the sampled tasks share.
        rank: index of this process.
        count: number of processes.
        equally_often: see `share_of`.
    """
    sizes = weighting.batch_sizes(list(batch.unsized), total)
    made = {name: make(sizes[name]) for name, make in batch.unsized.items()}
    if count > 1:
        made = share_of(StepBatch(batch.step, made), rank, count, equally_often).tasks
    return replace(batch, tasks=batch.tasks | made, unsized={})
