"""Makes batches, a function of (seed, stage, task, step), shares them out, and reads a user's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import datasets
import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

from tartan.core.seeding import generator_for
from tartan.core.task import Batch, Inputs, MicroBatch, StepBatch
from tartan.core.task_names import END_TASK
from tartan.data.task_kind import TaskKind
from tartan.data.tokenise import Text
from tartan.errors import UserError
from tartan.objectives.base import Collate, Row

_FORM = 'a batch must be {"text": [...], "label": [...]} (and "text_pair")'


@dataclass(frozen=True)
class TaskExamples:
    """A task's examples, and how batches are made of them.

    Tasks of the same `draw_group` draw the same examples and random numbers in each step.
    """

    examples: datasets.Dataset | ConcatDataset[Any]
    collate: Collate
    batch_size: int
    draw_group: str | None = None


@dataclass(frozen=True)
class BatchNeeds:
    """The batches that the steps of a module need: one of each task, and others."""

    stage: str  # its name is part of the seed of every random draw
    tasks: tuple[str, ...]
    meta: bool = False  # a validation batch, `B_val`
    meta_head_examples: int = 0  # of a batch for the meta head, none of them in the step's
    second: bool = False  # a second, independent batch of every task
    sampled: int | None = None  # number of auxiliary tasks that share one batch; None: one each


class StepBatches(Dataset[StepBatch]):
    """A stage's batches, indexed by step: the same in loader workers and in resumed runs.

    An epoch of a loader has `steps`; later steps have batches too.
    """

    def __init__(
        self,
        tasks: Mapping[str, TaskExamples],
        meta: TaskExamples | None,
        steps: int,
        seed: int,
        needs: BatchNeeds,
    ) -> None:
        self._tasks, self._meta = tasks, meta
        self._steps, self._seed, self._needs = steps, seed, needs
        self._orders: dict[tuple[str, str], ExampleOrder] = {}
        # of which some are sampled in each step
        self._others = [] if needs.sampled is None else [n for n in tasks if n != END_TASK]

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, step: int) -> StepBatch:
        needs, own = self._needs, [name for name in self._tasks if name not in self._others]
        result = StepBatch(step, {name: self._batch(step, "task", name)() for name in own})
        result.unsized = {name: self._batch(step, "task", name) for name in self.sampled(step)}
        if self._meta is not None:
            result.meta_batch = self._batch(step, "meta")()
        if needs.meta_head_examples:
            result.meta_head_batch = self._meta_head_batch(step)
        if needs.second:
            result.second = {name: self._batch(step, "second", name)() for name in self._tasks}
        return result

    def sampled(self, step: int) -> list[str]:
        """Return the names of the tasks that `step` samples, uniformly, without replacement."""
        if not self._others:
            return []
        generator = generator_for(self._seed, self._needs.stage, "sampled tasks", step)
        chosen = generator.choice(len(self._others), self._needs.sampled, replace=False)
        return [self._others[index] for index in sorted(chosen)]

    def _batch(self, step: int, kind: str, name: str = "") -> Callable[..., Batch]:
        """Return a function that makes the batch of the step's rows, or of the first so many."""
        data = self._meta if kind == "meta" else self._tasks[name]
        assert data is not None
        group = data.draw_group or name if kind == "task" else name
        rows = rows_at(data.examples, self._indices(step, data, kind, group))
        seed = (self._seed, self._needs.stage, kind, group, "batch", step)
        return partial(_row_batch, data.collate, rows, seed)

    def _indices(self, step: int, data: TaskExamples, kind: str, group: str) -> list[int]:
        key = (kind, group)
        if key not in self._orders:
            order = ExampleOrder(len(data.examples), self._seed, self._needs.stage, *key)
            self._orders[key] = order
        return self._orders[key].indices(step * data.batch_size, data.batch_size)

    def _meta_head_batch(self, step: int) -> Batch:
        """Return examples of the end task, drawn from those outside its own batch."""
        data, stage = self._tasks[END_TASK], self._needs.stage
        drawn = self._indices(step, data, "task", data.draw_group or END_TASK)
        rest = np.setdiff1d(np.arange(len(data.examples)), drawn)
        generator = generator_for(self._seed, stage, "meta_head", END_TASK, "batch", step)
        indices = generator.choice(rest, self._needs.meta_head_examples, replace=False).tolist()
        return data.collate(rows_at(data.examples, indices), generator)


def _row_batch(
    collate: Collate, rows: Sequence[Row], seed: tuple[Any, ...], count: int | None = None
) -> Batch:
    """Make a batch of the first `count` rows; no class, which Lightning would look into."""
    return collate(rows[:count], generator_for(*seed))


class ExampleOrder:
    """An endless order of `count` examples: a new permutation for every epoch.

    A batch may span two epochs, so that every example is used equally often.
    """

    def __init__(self, count: int, seed: int, *names: str) -> None:
        self._count, self._seed, self._names = count, seed, names
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def indices(self, start: int, length: int) -> list[int]:
        """Return the examples' indices at positions `start` to `start + length` of the order."""
        taken: list[int] = []
        while len(taken) < length:
            epoch, offset = divmod(start + len(taken), self._count)
            if epoch != self._epoch:
                generator = generator_for(self._seed, *self._names, "order", epoch)
                self._epoch, self._order = epoch, generator.permutation(self._count)
            taken += self._order[offset : offset + length - len(taken)].tolist()
        return taken


class EvaluationBatches(Dataset[MicroBatch]):
    """The examples of a split, each exactly once, in batches of similar length.

    A Trainer takes them as they are; a `DataLoader`'s examples it would share out once more.
    """

    def __init__(self, data: TaskExamples) -> None:
        self._data, examples = data, data.examples
        assert not isinstance(examples, ConcatDataset), "splits are never pooled"
        texts = "input_ids" in examples.column_names  # images are of one size
        lengths = [len(ids) for ids in examples["input_ids"]] if texts else [0] * len(examples)
        self._by_length = sorted(range(len(lengths)), key=lambda index: lengths[index])
        size = data.batch_size
        starts = range(0, len(self._by_length), size)
        self._batches = [self._by_length[start : start + size] for start in starts]

    def share(self, rank: int, count: int) -> EvaluationBatches:
        """Return the batches of process `rank` of `count`; all processes get equally many."""
        if len(self._by_length) < count:
            raise UserError(
                f"{count} processes cannot share a split of {len(self._by_length)} examples"
            )
        size = max(2, self._data.batch_size)  # or there would be fewer examples than batches
        each = -(-len(self._by_length) // (size * count))
        shares = np.array_split(np.asarray(self._by_length), each * count)
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


def share_of(whole: StepBatch, rank: int, count: int, equally_often: bool = False) -> StepBatch:
    """Return the share of process `rank` of `count` in a step.

    The longest micro-batches are assigned first, each to the process with the least to do so far.
    With `equally_often`, processes get them in turn, and repeat the smallest where they lack one.
    """
    loads = [0] * count

    def share(batch: Any) -> Any:
        if isinstance(batch, dict):
            return {name: share(one) for name, one in batch.items()}
        if batch is None:
            return None
        parts = batch.micro_batches
        if not equally_often:
            return batch.only(_shares(parts, loads)[rank])
        chosen = batch.only(range(rank, len(parts), count))
        lacks = -(-len(parts) // count) - len(chosen.micro_batches)
        if lacks:
            chosen.fillers = [min(parts, key=lambda part: part.examples)] * lacks
        return chosen

    kinds = ("tasks", "meta_batch", "meta_head_batch", "second")
    return replace(whole, **{kind: share(getattr(whole, kind)) for kind in kinds})


def _shares(parts: Sequence[MicroBatch], loads: list[int]) -> list[list[int]]:
    """Return the numbers of each process's micro-batches, and add their costs to `loads`."""
    shares: list[list[int]] = [[] for _ in loads]
    for number in sorted(range(len(parts)), key=lambda number: -parts[number].positions):
        rank = loads.index(min(loads))
        shares[rank].append(number)
        loads[rank] += parts[number].positions
    return [sorted(numbers) for numbers in shares]


def labelled_batch(
    batch: Any, labels: Sequence[str], kind: TaskKind, places: Tensor | None = None
) -> tuple[Sequence[Text] | Inputs, Tensor, Tensor | None]:
    """Return a batch's inputs, the codes of its labels, and which examples train has not.

    A batch is a `MicroBatch`, whose labels are at `places` in `labels` where these are others; or a
    mapping with `label`, as in the training data. Codes are indices, int64 `(n,)`, unless the kind
    of end task has others; the last is bool `(n,)`, or None where it is not known.
    """
    inputs = unlabelled_batch(batch)
    if isinstance(batch, MicroBatch):
        indices = batch.inputs.get("labels", batch.inputs.get("label"))
        if places is not None:
            indices = kind.placed(indices, places.to(indices.device), len(labels))
        return inputs, indices, batch.inputs.get("unseen")
    if not isinstance(batch, Mapping) or "label" not in batch:
        raise UserError(_FORM)
    names = batch["label"]
    names = names.tolist() if isinstance(names, Tensor) else names
    found = [kind.label_of(name) for name in names]
    if unknown := sorted(set(chain(*map(kind.names, found))) - set(labels)):
        raise UserError(f"label {unknown[0]!r} is not one of those trained on: {list(labels)}")
    index = {label: position for position, label in enumerate(labels)}
    return inputs, torch.tensor([kind.code(label, index) for label in found]), None


def unlabelled_batch(batch: Any) -> Sequence[Text] | Inputs:
    """Return a batch's inputs in the form that the module's `forward` takes.

    A list is one of texts, or of rows with a `text`. Lists of tuples are refused: PyTorch's own
    collate function makes of rows `(text, label)` a list of all texts and one of all labels, and of
    two pairs of texts what could as well be two pairs.
    """
    if isinstance(batch, MicroBatch):
        return batch.inputs
    if isinstance(batch, pd.DataFrame):  # whose items are the names of its columns
        batch = batch.to_dict("list")
    if isinstance(batch, list) and batch and isinstance(batch[0], Mapping):
        names = [name for name in ("text", "text_pair") if name in batch[0]]
        batch = {name: [row[name] for row in batch] for name in names}
    if not isinstance(batch, Mapping):
        return _texts(batch)
    if "text" in batch:
        texts, pairs = _texts(batch["text"]), batch.get("text_pair")
        return texts if pairs is None else list(zip(texts, _texts(pairs), strict=True))
    if not {"input_ids", "images"} & set(batch):
        raise UserError(_FORM)
    mask = batch.get("attention_mask")
    if mask is not None and not bool(mask[:, 0].all()):  # the first token is read
        raise UserError('a batch is padded on the left; use padding_side="right"')
    return batch


def _texts(column: Any) -> list[str]:
    texts = [column] if isinstance(column, str) else list(column)
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"a batch holds something else than texts; {_FORM}")
    return texts
