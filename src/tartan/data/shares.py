"""Divides the micro-batches of a step among processes, and a batch among sampled tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tartan.core.task import Batch, MicroBatch, StepBatch
from tartan.core.weighting.base import Weighting


def share_of(whole: StepBatch, rank: int, count: int, equally_often: bool = False) -> StepBatch:
    """Return the share of process `rank` of `count` in a step.

    The longest micro-batches are assigned first, each to the process with the least to do so far,
    earlier tasks included: only the step as a whole has to be balanced, because no task waits for
    another. With `equally_often`, processes get micro-batches in turn, and repeat the smallest one
    where they lack one.
    """
    loads = [0] * count

    def share(batch: Batch) -> Batch:
        if not equally_often:
            return batch.only(_shares(batch.micro_batches, loads)[rank])
        parts = batch.micro_batches
        chosen = batch.only(range(rank, len(parts), count))
        lacks = -(-len(parts) // count) - len(chosen.micro_batches)
        if lacks:
            chosen.fillers = [min(parts, key=lambda part: part.examples)] * lacks
        return chosen

    return replace(
        whole,
        tasks={name: share(batch) for name, batch in whole.tasks.items()},
        meta_batch=None if whole.meta_batch is None else share(whole.meta_batch),
        meta_head_batch=None if whole.meta_head_batch is None else share(whole.meta_head_batch),
        second=None
        if whole.second is None
        else {name: share(batch) for name, batch in whole.second.items()},
    )


def with_sampled_batches(
    batch: StepBatch,
    weighting: Weighting,
    total: int,
    rank: int = 0,
    count: int = 1,
    equally_often: bool = False,
) -> StepBatch:
    """Return the step with a batch for each task that it samples.

    The weighting decides how many of the `total` examples each task gets. Every process makes the
    whole batches, from the same weights, and keeps its share of them (see `share_of`).
    """
    sizes = weighting.batch_sizes(list(batch.unsized), total)
    sampled = {name: make(sizes[name]) for name, make in batch.unsized.items()}
    if count > 1:
        sampled = share_of(StepBatch(batch.step, sampled), rank, count, equally_often).tasks
    return replace(batch, tasks=batch.tasks | sampled, unsized={})


def _shares(parts: Sequence[MicroBatch], loads: list[int]) -> list[list[int]]:
    """Return the numbers of each process's micro-batches, and add their costs to `loads`."""
    shares: list[list[int]] = [[] for _ in loads]
    for number in sorted(range(len(parts)), key=lambda number: -parts[number].positions):
        rank = loads.index(min(loads))
        shares[rank].append(number)
        loads[rank] += parts[number].positions
    return [sorted(numbers) for numbers in shares]
