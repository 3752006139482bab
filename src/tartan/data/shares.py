"""Divides the micro-batches of a step among processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tartan.core.task import Batch, MicroBatch, StepBatch


def share_of(whole: StepBatch, rank: int, count: int, equally_often: bool = False) -> StepBatch:
    """Return the share of process `rank` of `count` in a step.

    The longest micro-batches are assigned first, each to the process with the least to do so far,
    earlier tasks included: only the step as a whole has to be balanced, because no task waits for
    another. With `equally_often`, processes get micro-batches in turn, and repeat the smallest one
    where they lack one.
    """
    loads = [0] * count

    def own(batch: Batch) -> Batch:
        if equally_often:
            parts = len(batch.micro_batches)
            return filled(batch, range(rank, parts, count), passes=-(-parts // count))
        return batch.only(_shares(batch.micro_batches, loads)[rank])

    def all_own(batches: Mapping[str, Batch]) -> dict[str, Batch]:
        return {name: own(batch) for name, batch in batches.items()}

    return replace(
        whole,
        tasks=all_own(whole.tasks),
        meta_batch=None if whole.meta_batch is None else own(whole.meta_batch),
        meta_head_batch=None if whole.meta_head_batch is None else own(whole.meta_head_batch),
        second=None if whole.second is None else all_own(whole.second),
    )


def filled(batch: Batch, numbers: Sequence[int], passes: int) -> Batch:
    """Return the micro-batches at `numbers`, the smallest repeated to make `passes`."""
    own = batch.only(numbers)
    fillers: list[MicroBatch] = []
    if batch.micro_batches:  # a batch without any unit has none
        smallest = min(batch.micro_batches, key=lambda part: part.examples)
        fillers = [smallest] * max(0, passes - len(own.micro_batches))
    return replace(own, fillers=fillers)


def _shares(parts: Sequence[MicroBatch], loads: list[int]) -> list[list[int]]:
    """Return the numbers of each process's micro-batches, and add their costs to `loads`."""
    costs = [part.positions for part in parts]
    shares: list[list[int]] = [[] for _ in loads]
    for number in sorted(range(len(parts)), key=lambda number: -costs[number]):
        rank = loads.index(min(loads))
        shares[rank].append(number)
        loads[rank] += costs[number]
    return [sorted(numbers) for numbers in shares]
