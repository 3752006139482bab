"""A stage's batches as a LightningDataModule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, Sampler

from src.core.task import MicroBatch, StepBatch
from src.data.batches import EvaluationBatches, StepBatches
from src.distributed.shares import SharedSteps
from src.distributed.strategy import ShardStrategy
from src.methods.module import TaskMixing
from src.methods.sampled_batches import sized


class StageData(pl.LightningDataModule):
    """Loaders over batches that are functions of the step; one Lightning epoch is the stage.

    Args:
        train: the stage's steps.
        dev: the end task's dev split; None in stages without the end task.
        num_workers: loader processes; None chooses 0 on the CPU (where they would take the
            cores that train) and 2 with an accelerator.
    """

    def __init__(
        self, train: StepBatches, dev: EvaluationBatches | None, num_workers: int | None
    ) -> None:
        super().__init__()
        self.train, self.dev = train, dev
        accelerated = torch.cuda.is_available()
        self._workers = num_workers if num_workers is not None else (2 if accelerated else 0)
        self._pin_memory = accelerated

    def train_dataloader(self) -> StepLoader:
        """The steps in order; whatever is random was decided by their numbers."""
        steps: StepBatches | SharedSteps = self.train
        if self.trainer is not None and self.trainer.world_size > 1:
            steps = SharedSteps(
                self.train,
                self.trainer.global_rank,
                self.trainer.world_size,
                equally_often=isinstance(self.trainer.strategy, ShardStrategy),
            )
        return StepLoader(
            self, steps, num_workers=self._workers, pin_memory=self._pin_memory,
            persistent_workers=self._workers > 0,
        )  # fmt: skip

    def val_dataloader(self) -> DataLoader[MicroBatch]:
        """The dev split, each example once; not called in stages without the end task."""
        if self.dev is None:
            raise ValueError("this stage does not train the end task, which is what dev measures")
        return _evaluation_loader(self.dev, self.trainer)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Share a batch among the tasks that a step samples, by what they weigh now."""
        sampling = self.train.sampling
        if sampling is None or not isinstance(batch, StepBatch):
            return batch
        assert self.trainer is not None
        module = self.trainer.lightning_module
        assert isinstance(module, TaskMixing)
        return sized(
            batch, module.weighting, sampling.batch_size, self.trainer.global_rank,
            self.trainer.world_size, isinstance(self.trainer.strategy, ShardStrategy),
        )  # fmt: skip

    def steps_done(self) -> int:
        """Optimiser steps that the trainer has taken."""
        return int(self.trainer.global_step) if self.trainer is not None else 0


class StepLoader(DataLoader[StepBatch]):
    """The steps in order, from where a checkpoint was taken.

    Its state is the number of steps *taken*: batches that workers have prepared in advance are
    prepared again.
    """

    def __init__(self, data: StageData, batches: StepBatches | SharedSteps, **options: Any) -> None:
        self._data = data
        self._order = _FromStep(len(batches))
        super().__init__(batches, batch_size=None, sampler=self._order, **options)

    def state_dict(self) -> dict[str, int]:
        """Lightning puts this into its checkpoints."""
        return {"step": self._data.steps_done()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Begin after the steps that were taken."""
        self._order.first = state["step"]


class _FromStep(Sampler[int]):
    """`first`, `first + 1`, ...; its length is that of the whole stage, as Lightning counts."""

    def __init__(self, steps: int) -> None:
        self.steps, self.first = steps, 0

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.steps))


class TestData(pl.LightningDataModule):
    """The end task's test split."""

    def __init__(self, test: EvaluationBatches) -> None:
        super().__init__()
        self.test = test

    def test_dataloader(self) -> DataLoader[MicroBatch]:
        """Each example once."""
        return _evaluation_loader(self.test, self.trainer)


def _evaluation_loader(
    batches: EvaluationBatches, trainer: pl.Trainer | None
) -> DataLoader[MicroBatch]:
    """A split's batches, in the process that evaluates; one of several takes its share."""
    if trainer is not None and trainer.world_size > 1:
        batches = batches.share(trainer.global_rank, trainer.world_size)
    return DataLoader(batches, batch_size=None)
