"""Provides the loaders of a labelled task and its auxiliary tasks, as a LightningDataModule."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import datasets
import lightning.pytorch as pl
import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.utils.data import DataLoader

from tartan.core.device import is_on_cpu, is_on_cuda
from tartan.core.task import StepBatch
from tartan.core.task_names import END_TASK
from tartan.data.batches import BatchNeeds, EvaluationBatches, StepBatches, TaskExamples, share_of
from tartan.data.prepared import Prepared
from tartan.data.text_task import TextTask
from tartan.encoders.text_encoder import packs_texts
from tartan.errors import UserError
from tartan.settings import Checked, Count, Natural, checked

GPU_TOKENS = 2**14
"""Tokens of a micro-batch that keep a large GPU busy; some 8 GiB with RoBERTa-base."""


@dataclass(frozen=True)
class BatchSizes(Checked):
    """Sizes of all kinds of batches.

    Attributes:
        batch_size: examples of each task in an optimiser step [examples].
        meta_batch_size: examples of `B_val` [examples].
        micro_batch_size: examples that go through the body at once in training: bounds memory;
            None takes 16, on a single CUDA GPU as many as have 16,384 tokens at the maximum length
            [examples].
        evaluation_batch_size: the same in evaluations [examples].
        packed: put texts into rows without padding, where the encoder reads such rows and there is
            a kernel for them: on a CPU; on a GPU in bf16, in training with attention dropout only
            if the package flash-attn is there.
        epoch_steps: optimiser steps that count as an epoch; None takes those of one pass over the
            end task's training examples (without the end task, over the largest auxiliary task's)
            [steps].
    """

    batch_size: Count = 32
    meta_batch_size: Count = 32
    micro_batch_size: Count | None = None
    evaluation_batch_size: Count = 64
    packed: bool = True
    epoch_steps: Count | None = None


class TaskData(pl.LightningDataModule):
    """Provides the Trainer's loaders, whose batches are functions of seed, stage, task and step.

    Args:
        prepared: the data, or a function that reads them at first need.
        sizes: sizes of the batches.
        seed: seed of every random draw.
        num_workers: loader processes; None takes 2 where the Trainer trains on a CUDA GPU, and 0
            elsewhere (on a CPU they would compete with the training for cores).
    """

    @checked
    def __init__(
        self,
        prepared: Prepared | Callable[[], Prepared],
        sizes: BatchSizes,
        *,
        seed: Natural = 0,
        num_workers: Natural | None = None,
    ) -> None:
        super().__init__()
        self._source, self.sizes, self.seed, self._num_workers = prepared, sizes, seed, num_workers

    @cached_property
    def prepared(self) -> Prepared:
        """The data and their encoder, read when this is first accessed."""
        return self._source if isinstance(self._source, Prepared) else self._source()

    def prepare_data(self) -> None:
        """Read the data in one process, so that the cache is written once."""
        _ = self.prepared

    def teardown(self, stage: str) -> None:
        """Forget the Trainer, whose module and step the loaders are for."""
        self.trainer = None

    def train_dataloader(self) -> StepLoader:
        """Return a loader of the steps of the Trainer's module, an epoch at a time.

        Each of several processes makes the whole batches, and keeps some of their micro-batches.
        """
        trainer, alone = self._running(), self._running().world_size == 1

        def next_step() -> int:
            if not trainer.overfit_batches:
                return int(trainer.global_step)
            # every epoch is the first one again, also where a checkpoint was written inside one
            return int(trainer.global_step % trainer.num_training_batches)

        on_cuda = trainer.strategy.root_device.type == "cuda"
        workers = self._num_workers if self._num_workers is not None else 2 * on_cuda
        if workers:  # each tensor that one sends is an open file
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            atexit.register(_end_workers)
        return StepLoader(
            self.steps(self._needs(), *self._arithmetic(), alone=alone),
            next_step,
            collate_fn=None if alone else partial(share_of, **_share(trainer)),
            num_workers=workers,
            pin_memory=on_cuda,
            persistent_workers=workers > 0,
            worker_init_fn=_ignore_termination,
        )

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Divide a batch among the tasks that a step samples, by their current weights."""
        if not isinstance(batch, StepBatch) or not batch.unsized:
            return batch
        trainer = self._running()
        weighting: Any = trainer.lightning_module.weighting
        sizes = weighting.batch_sizes(list(batch.unsized), self.sizes.batch_size)
        sampled = {name: make(sizes[name]) for name, make in batch.unsized.items()}
        if trainer.world_size > 1:  # every process makes the whole batches
            sampled = share_of(StepBatch(batch.step, sampled), **_share(trainer)).tasks
        whole = replace(batch, tasks=batch.tasks | sampled, unsized={})
        on_cuda = trainer.strategy.root_device.type == "cuda"
        return whole.pin_memory() if on_cuda else whole  # as the loader pins the others

    def val_dataloader(self) -> EvaluationBatches | list[EvaluationBatches]:
        """Return a loader of dev, each example once; none where the end task is not trained."""
        evaluated = END_TASK in self._needs().tasks or self.prepared.held_out is not None
        return self._split("dev") if evaluated else []

    def test_dataloader(self) -> EvaluationBatches:
        return self._split("test")

    def predict_dataloader(self) -> EvaluationBatches | DataLoader[Any]:
        """Return a loader of test; texts come in their original order."""
        task = self.prepared.end_task
        if not self.prepared.has_test:
            raise UserError("there is no test split")
        if not isinstance(task, TextTask):
            return self._split("test")
        rows: Any = task.test.rows(labelled=False)
        size = self.sizes.evaluation_batch_size
        # by keyword: Lightning makes it anew with other arguments
        return DataLoader(rows, batch_size=size, generator=torch.Generator())

    def epoch_steps(self, needs: BatchNeeds) -> int:
        end_task, others = self.prepared.counts(needs.tasks)
        examples = max(others) if end_task is None else end_task
        return self.sizes.epoch_steps or math.ceil(examples / self.sizes.batch_size)

    def micro_batch_size(self, accelerator: str = "auto", *, alone: bool = True) -> int:
        """Return how many examples go through the body at once in a process's training."""
        given, longest = self.sizes.micro_batch_size, self.prepared.max_length
        if given is not None or longest is None or not (alone and is_on_cuda(accelerator)):
            return given or 16
        return max(16, GPU_TOKENS // longest)

    def steps(
        self,
        needs: BatchNeeds,
        accelerator: str = "auto",
        precision: str = "32-true",
        *,
        alone: bool = True,
    ) -> StepBatches:
        """Return the batches of every step of a module, as the device and processes need them."""
        prepared, sizes = self.prepared, self.sizes
        micro = self.micro_batch_size(accelerator, alone=alone)
        layout: dict[str, Any] = {
            "packed": self._packs(accelerator, precision, trains=True),
            "on_cpu": is_on_cpu(accelerator),
        }
        tasks, meta, encoder = {}, None, prepared.encoder
        for name in needs.tasks:
            collate = prepared.objective(name).collate(encoder, micro, **layout)
            auxiliary = prepared.auxiliaries.get(name)
            group = None if auxiliary is None else auxiliary[1].draw_group
            tasks[name] = TaskExamples(prepared.rows(name), collate, sizes.batch_size, group)
        if needs.meta:
            collate = prepared.classification.collate(encoder, micro, training=False, **layout)
            meta = TaskExamples(prepared.splits.dev, collate, sizes.meta_batch_size)
        return StepBatches(tasks, meta, self.epoch_steps(needs), self.seed, needs)

    def evaluation(
        self, split: str, accelerator: str = "auto", precision: str = "32-true"
    ) -> EvaluationBatches:
        """Return a split of the end task, `train`, `dev` or `test`, in evaluation batches.

        Without an end task, dev is the text that is held out of all corpora, with fixed masks.
        """
        prepared, size = self.prepared, self.sizes.evaluation_batch_size
        options: dict[str, Any] = {"packed": self._packs(accelerator, precision, trains=False)}
        if split == "dev" and prepared.held_out is not None:
            examples = [examples for _, examples in prepared.auxiliaries.values()]
            objective: Any = examples[0].objective
            options["mask_seed"] = prepared.held_out.seed
            rows = datasets.concatenate_datasets(
                [own.held_out.select_columns(["input_ids"]) for own in examples if own.held_out]
            )
        else:
            objective, rows = prepared.classification, getattr(prepared.splits, split)
        if not len(rows):
            raise UserError(f"there is no {split} split")
        # not split for a CPU: a batch goes through whole, its texts sorted by length beforehand; in
        # a process's share it may have two texts (see `EvaluationBatches.share`)
        collate = objective.collate(prepared.encoder, max(2, size), training=False, **options)
        return EvaluationBatches(TaskExamples(rows, collate, size))

    def _split(self, name: str) -> EvaluationBatches:
        batches, trainer = self.evaluation(name, *self._arithmetic()), self._running()
        if trainer.world_size > 1:
            batches = batches.share(trainer.global_rank, trainer.world_size)
        return batches

    def _packs(self, accelerator: str, precision: str, *, trains: bool) -> bool:
        encoder = self.prepared.encoder
        return self.sizes.packed and packs_texts(encoder, accelerator, precision, trains=trains)

    def _arithmetic(self) -> tuple[str, str]:
        trainer = self._running()
        kind = trainer.strategy.root_device.type
        return "cpu" if kind == "cpu" else "auto", str(trainer.precision)

    def _running(self) -> pl.Trainer:
        if self.trainer is None:
            raise UserError("TartanData has loaders once it is a Trainer's datamodule")
        return self.trainer

    def _needs(self) -> BatchNeeds:
        return cast(BatchNeeds, self._running().lightning_module.batch_needs)


class StepLoader:
    """Yields an epoch's batches, from the step that is next when the first one is asked for.

    It is no `DataLoader`, whose sampler Lightning would exchange; `options` are those of its own.
    """

    def __init__(self, batches: StepBatches, next_step: Callable[[], int], **options: Any) -> None:
        self._next_step, self._steps = next_step, list(range(len(batches)))
        # a generator of its own: a DataLoader draws a seed, here from the program's otherwise
        self._loader: DataLoader[StepBatch] = DataLoader(
            batches, batch_size=None, sampler=self._steps, generator=torch.Generator(), **options
        )

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[StepBatch]:
        # Lightning asks for an iterator before it has restored its step, and for batches afterwards
        first = self._next_step()
        self._steps[:] = range(first, first + len(self))
        yield from self._loader

    def state_dict(self) -> dict[str, int]:
        """Return a state, by which Lightning knows that the loader can be resumed."""
        return {"step": self._next_step()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Do nothing: the Trainer restores its own step, from which the next batch follows."""


def _share(trainer: pl.Trainer) -> dict[str, Any]:
    return {
        "rank": trainer.global_rank,
        "count": trainer.world_size,
        "equally_often": isinstance(trainer.strategy, ModelParallelStrategy),
    }


def _ignore_termination(worker: int) -> None:
    """Let the first process decide about SIGTERM: a scheduler sends it to the whole group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _end_workers() -> None:
    """End the workers at exit, when multiprocessing waits for those it has sent a SIGTERM."""
    for process in multiprocessing.active_children():
        if process.daemon:
            process.kill()
