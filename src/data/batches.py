"""Batches as a function of (seed, stage, task, step): any step's batch can be had at any time."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
from torch.utils.data import Dataset

from src.core.seeding import generator_for
from src.core.task import Batch, MicroBatch, StepBatch
from src.data.permutation import RandomOrder
from src.data.pooled import PooledRows
from src.errors import UserError
from src.objectives.base import Collate, Row


@dataclass(frozen=True)
class TaskExamples:
    """A task's examples, how many of them make a batch, and how.

    Tasks with the same `draws` draw the same examples and random numbers in each step.
    """

    examples: datasets.Dataset | PooledRows
    collate: Collate
    batch_size: int
    draws: str | None = None


@dataclass(frozen=True)
class UnsizedBatch:
    """A batch's rows, of which only the first so many may be taken.

    Attributes:
        rows: as many as there can be.
        collate: makes a batch of them.
        seed: the run's seed.
        names: what the batch's random draws are for (see `generator_for`).
    """

    rows: Sequence[Row]
    collate: Collate
    seed: int
    names: tuple[str | int, ...]

    def __call__(self, count: int) -> Batch:
        """The batch of the first `count` rows."""
        return self.collate(self.rows[:count], generator_for(self.seed, *self.names))


@dataclass(frozen=True)
class TaskSampling:
    """The tasks that a step samples: uniformly, without replacement, as a function of the step.

    Attributes:
        tasks: names of those to sample from.
        count: how many a step samples.
        batch_size: of the batch that they share [examples].
        seed: the run's seed.
        stage: the stage's name.
    """

    tasks: tuple[str, ...]
    count: int
    batch_size: int
    seed: int
    stage: str

    def at(self, step: int) -> list[str]:
        """The names that `step` samples, in the order of `tasks`."""
        generator = generator_for(self.seed, self.stage, "sampled tasks", step)
        chosen = generator.choice(len(self.tasks), self.count, replace=False)
        return [self.tasks[index] for index in sorted(chosen)]


@dataclass(frozen=True)
class BatchNeeds:
    """The batches that a module's steps need.

    Attributes:
        stage: part of every random draw's seed.
        tasks: names of the tasks, each of which has a batch in every step.
        meta: whether steps bring `B_val`.
        apart: examples of `meta_head` [examples]; 0 for no such batch.
        second: whether steps bring second batches.
        sampled: auxiliary tasks that each step samples, which share one batch; None for all, with a
            batch each [tasks].
    """

    stage: str
    tasks: tuple[str, ...]
    meta: bool = False
    apart: int = 0
    second: bool = False
    sampled: int | None = None


class ExampleOrder:
    """An endless order of `count` examples, epoch after epoch, each epoch a new permutation.

    A batch may span two epochs, so that all batches have the same size and every example is used
    equally often.
    """

    def __init__(self, count: int, seed: int, *names: str) -> None:
        self._count, self._seed, self._names = count, seed, names
        self._epoch = -1
        self._order: RandomOrder | None = None

    def indices(self, start: int, length: int) -> list[int]:
        """Positions `start` to `start + length` of the endless order, as example indices."""
        taken: list[int] = []
        while len(taken) < length:
            epoch, offset = divmod(start + len(taken), self._count)
            end = min(self._count, offset + length - len(taken))
            taken += self._of_epoch(epoch).part(offset, end).tolist()
        return taken

    def _of_epoch(self, epoch: int) -> RandomOrder:
        if self._order is None or epoch != self._epoch:
            generator = generator_for(self._seed, *self._names, "order", epoch)
            self._epoch, self._order = epoch, RandomOrder(self._count, generator)
        return self._order


class StepBatches(Dataset[StepBatch]):
    """A stage's batches, indexed by step; workers and resumed runs build what one process would.

    Args:
        tasks: examples by task name.
        meta: the end task's validation examples, or None.
        steps: number of steps that make an epoch of a loader; there is a batch for any further one.
        seed: the run's seed.
        stage: the stage's name.
        apart: a task's name, and how many of its examples that are not in its own batch make
            `meta_head`; None for no such batch.
        second: whether each step brings second batches.
        sampling: which tasks each step samples; they share one batch and come `unsized`. None
            brings every task's own.

    Raises:
        ValueError: the task has too few examples for that.
    """

    def __init__(
        self,
        tasks: Mapping[str, TaskExamples],
        meta: TaskExamples | None,
        steps: int,
        seed: int,
        stage: str,
        apart: tuple[str, int] | None = None,
        second: bool = False,
        sampling: TaskSampling | None = None,
    ) -> None:
        if apart is not None:
            data = tasks[apart[0]]
            if data.batch_size + apart[1] > len(data.examples):
                raise ValueError(f"no {apart[1]} examples are left beside each batch of {apart[0]}")
        self._apart, self._second, self.sampling = apart, second, sampling
        self._sources = {name: (data, "task", data.draws or name) for name, data in tasks.items()}
        self._meta = None if meta is None else (meta, "meta", "")
        self._steps, self._seed, self._stage = steps, seed, stage
        self._orders: dict[tuple[str, str], ExampleOrder] = {}

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, step: int) -> StepBatch:
        sampled = [] if self.sampling is None else self.sampling.at(step)
        others = () if self.sampling is None else self.sampling.tasks
        return StepBatch(
            step=step,
            tasks={
                name: self._batch(step, *source)
                for name, source in self._sources.items()
                if name not in others
            },
            unsized={name: self._rows(step, *self._sources[name]) for name in sampled},
            meta=None if self._meta is None else self._batch(step, *self._meta),
            meta_head=None if self._apart is None else self._batch_apart(step, *self._apart),
            second=self._seconds(step) if self._second else None,
        )

    def example_indices(self, task: str, step: int) -> list[int]:
        """Return which of the task's examples are in its batch of `step`, counted from 0."""
        return self._indices(step, *self._sources[task])

    def _batch(self, step: int, data: TaskExamples, kind: str, name: str) -> Batch:
        return self._rows(step, data, kind, name)(data.batch_size)

    def _rows(self, step: int, data: TaskExamples, kind: str, name: str) -> UnsizedBatch:
        rows = rows_at(data.examples, self._indices(step, data, kind, name))
        return UnsizedBatch(
            rows, data.collate, self._seed, (self._stage, kind, name, "batch", step)
        )

    def _indices(self, step: int, data: TaskExamples, kind: str, name: str) -> list[int]:
        key = (kind, name)
        if key not in self._orders:
            self._orders[key] = ExampleOrder(len(data.examples), self._seed, self._stage, *key)
        return self._orders[key].indices(step * data.batch_size, data.batch_size)

    def _seconds(self, step: int) -> dict[str, Batch]:
        return {
            name: self._batch(step, data, "second", name)
            for name, (data, _, _) in self._sources.items()
        }

    def _batch_apart(self, step: int, task: str, count: int) -> Batch:
        """`count` examples of `task`, drawn at random from those that are not in its batch."""
        source = self._sources[task]
        data = source[0]
        rest = np.setdiff1d(np.arange(len(data.examples)), self._indices(step, *source))
        generator = generator_for(self._seed, self._stage, "meta_head", task, "batch", step)
        indices = generator.choice(rest, count, replace=False).tolist()
        return data.collate(rows_at(data.examples, indices), generator)


class EvaluationBatches(Dataset[MicroBatch]):
    """Every example of a split exactly once, in batches of similar length."""

    def __init__(self, data: TaskExamples) -> None:
        self._data, examples = data, data.examples
        assert not isinstance(examples, PooledRows), "splits are never pooled"
        texts = "input_ids" in examples.column_names  # images are of one size
        lengths = [len(ids) for ids in examples["input_ids"]] if texts else [0] * len(examples)
        order = sorted(range(len(lengths)), key=lambda index: lengths[index])
        size = data.batch_size
        self._order = order
        self._batches = [order[start : start + size] for start in range(0, len(order), size)]

    def share(self, rank: int, count: int) -> EvaluationBatches:
        """Those of process `rank` of `count`: as many for each, and at least one.

        Raises:
            UserError: there are more processes than examples.
        """
        if len(self._order) < count:
            raise UserError(
                f"a split of {len(self._order)} examples cannot be evaluated by {count} "
                "processes; use fewer (trainer.devices), or more examples"
            )
        size = max(2, self._data.batch_size)  # or there would be fewer examples than batches
        each = -(-len(self._order) // (size * count))
        parts = np.array_split(np.asarray(self._order), each * count)
        shared = copy.copy(self)
        shared._batches = [part.tolist() for part in parts[rank::count]]
        return shared

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> MicroBatch:
        rows = rows_at(self._data.examples, self._batches[index])
        unused = np.random.Generator(np.random.Philox(0))
        (whole,) = self._data.collate(rows, unused).micro_batches
        return whole


def rows_at(
    examples: datasets.Dataset | PooledRows, indices: Sequence[int]
) -> list[dict[str, Any]]:
    """The rows at `indices`, in that order; an index may occur more than once."""
    columns = examples[list(indices)]
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
