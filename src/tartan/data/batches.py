"""Makes the batches of each step, as a function of (seed, stage, task, step)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import datasets
import numpy as np
from torch.utils.data import ConcatDataset, Dataset

from tartan.core.seeding import generator_for
from tartan.core.task import Batch, MicroBatch, StepBatch
from tartan.core.task_names import END_TASK
from tartan.core.weighting.base import Weighting
from tartan.data.order import ExampleOrder
from tartan.data.shares import share_of
from tartan.errors import UserError
from tartan.objectives.base import Collate, Row


@dataclass(frozen=True)
class TaskExamples:
    """A task's examples, and how batches are made of them.

    Attributes:
        examples: the rows, in one data set or in several, one after the other.
        collate: the function that makes a batch of rows.
        batch_size: rows of a batch [examples].
        draw_group: tasks with the same value draw the same examples and random numbers in each
            step; None where the task draws independently of others.
    """

    examples: datasets.Dataset | ConcatDataset[Any]
    collate: Collate
    batch_size: int
    draw_group: str | None = None


@dataclass(frozen=True)
class BatchNeeds:
    """The batches that the steps of a module need.

    Attributes:
        stage: the stage's name, which is part of the seed of every random draw.
        tasks: names of the tasks, each of which has a batch in every step.
        meta: whether each step brings a validation batch `B_val`.
        meta_head_examples: size of the batch on which the meta head is fitted, of examples that are
            not in the end task's own batch; 0 for no such batch [examples].
        second: whether each step brings a second, independent batch of every task.
        sampled: number of auxiliary tasks that each step samples, which share one batch; None for
            all of them, with a batch each [tasks].
    """

    stage: str
    tasks: tuple[str, ...]
    meta: bool = False
    meta_head_examples: int = 0
    second: bool = False
    sampled: int | None = None


class StepBatches(Dataset[StepBatch]):
    """A stage's batches, indexed by step: the same in loader workers and in resumed runs.

    Args:
        tasks: examples by task name.
        meta: the end task's validation examples; None where no step needs them.
        steps: number of steps in an epoch of a loader; later steps have batches too.
        seed: the run's seed.
        needs: which batches each step has besides; tasks that are sampled share one batch and come
            as `unsized`, all others have a batch of their own.
    """

    def __init__(
        self,
        tasks: Mapping[str, TaskExamples],
        meta: TaskExamples | None,
        steps: int,
        seed: int,
        needs: BatchNeeds,
    ) -> None:
        self._sources = {
            name: (data, "task", data.draw_group or name) for name, data in tasks.items()
        }
        self._meta = None if meta is None else (meta, "meta", "")
        self._steps, self._seed, self._needs = steps, seed, needs
        self._orders: dict[tuple[str, str], ExampleOrder] = {}

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, step: int) -> StepBatch:
        needs = self._needs
        return StepBatch(
            step=step,
            tasks={
                name: self._batch(step, *source)
                for name, source in self._sources.items()
                if name == END_TASK or needs.sampled is None
            },
            unsized={name: self._rows(step, *self._sources[name]) for name in self.sampled(step)},
            meta_batch=None if self._meta is None else self._batch(step, *self._meta),
            meta_head_batch=self._meta_head_batch(step) if needs.meta_head_examples else None,
            second={
                name: self._batch(step, data, "second", name)
                for name, (data, _, _) in self._sources.items()
            }
            if needs.second
            else None,
        )

    def sampled(self, step: int) -> list[str]:
        """Return the names of the tasks that `step` samples, uniformly, without replacement."""
        if self._needs.sampled is None:
            return []
        others = [name for name in self._sources if name != END_TASK]
        generator = generator_for(self._seed, self._needs.stage, "sampled tasks", step)
        chosen = generator.choice(len(others), self._needs.sampled, replace=False)
        return [others[index] for index in sorted(chosen)]

    def example_indices(self, task: str, step: int) -> list[int]:
        """Return the indices of the task's examples in its batch of `step`."""
        return self._indices(step, *self._sources[task])

    def _batch(self, step: int, data: TaskExamples, kind: str, name: str) -> Batch:
        return self._rows(step, data, kind, name)(data.batch_size)

    def _rows(self, step: int, data: TaskExamples, kind: str, name: str) -> Callable[[int], Batch]:
        """Return a function that makes the batch of the first so many of the step's rows."""
        rows = rows_at(data.examples, self._indices(step, data, kind, name))
        names = (self._needs.stage, kind, name, "batch", step)
        return partial(_batch_of, rows, data.collate, self._seed, names)

    def _indices(self, step: int, data: TaskExamples, kind: str, name: str) -> list[int]:
        key = (kind, name)
        if key not in self._orders:
            self._orders[key] = ExampleOrder(
                len(data.examples), self._seed, self._needs.stage, *key
            )
        return self._orders[key].indices(step * data.batch_size, data.batch_size)

    def _meta_head_batch(self, step: int) -> Batch:
        """Return examples of the end task, drawn from those outside its own batch."""
        data, stage = self._sources[END_TASK][0], self._needs.stage
        rest = np.setdiff1d(np.arange(len(data.examples)), self.example_indices(END_TASK, step))
        generator = generator_for(self._seed, stage, "meta_head", END_TASK, "batch", step)
        indices = generator.choice(rest, self._needs.meta_head_examples, replace=False).tolist()
        return data.collate(rows_at(data.examples, indices), generator)


def _batch_of(
    rows: Sequence[Row], collate: Collate, seed: int, names: tuple[str | int, ...], count: int
) -> Batch:
    return collate(rows[:count], generator_for(seed, *names))


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


class EvaluationBatches(Dataset[MicroBatch]):
    """The examples of a split, each exactly once, in batches of similar length.

    A Trainer takes them as they are; a `DataLoader`'s examples it would share out once more.
    """

    def __init__(self, data: TaskExamples) -> None:
        self._data, examples = data, data.examples
        assert not isinstance(examples, ConcatDataset), "splits are never pooled"
        texts = "input_ids" in examples.column_names  # images are of one size
        lengths = [len(ids) for ids in examples["input_ids"]] if texts else [0] * len(examples)
        self._order = sorted(range(len(lengths)), key=lambda index: lengths[index])
        size = data.batch_size
        self._batches = [
            self._order[start : start + size] for start in range(0, len(self._order), size)
        ]

    def share(self, rank: int, count: int) -> EvaluationBatches:
        """Return the batches of process `rank` of `count`; all processes get equally many."""
        if len(self._order) < count:
            raise UserError(
                f"a split of {len(self._order)} examples cannot be shared by {count} processes"
            )
        size = max(2, self._data.batch_size)  # or there would be fewer examples than batches
        each = -(-len(self._order) // (size * count))
        shares = np.array_split(np.asarray(self._order), each * count)
        shared = copy.copy(self)
        shared._batches = [share.tolist() for share in shares[rank::count]]
        return shared

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[MicroBatch]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> MicroBatch:
        rows = rows_at(self._data.examples, self._batches[index])
        unused = np.random.Generator(np.random.Philox(0))
        (whole,) = self._data.collate(rows, unused).micro_batches
        return whole


def rows_at(
    examples: datasets.Dataset | ConcatDataset[Any], indices: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the rows at `indices`, in that order; an index may occur more than once."""
    if isinstance(examples, ConcatDataset):
        return [examples[index] for index in indices]
    columns = examples[list(indices)]
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
