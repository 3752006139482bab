"""A stage's batches as a LightningDataModule."""

from __future__ import annotations

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader

from src.core.task import MicroBatch
from src.data.batches import EvaluationBatches, StepBatch, StepBatches


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

    def train_dataloader(self) -> DataLoader[StepBatch]:
        """The steps in order; whatever is random was decided by their numbers."""
        return self._loader(self.train)

    def val_dataloader(self) -> DataLoader[MicroBatch]:
        """The dev split, each example once; not called in stages without the end task."""
        if self.dev is None:
            raise ValueError("this stage does not train the end task, which is what dev measures")
        return evaluation_loader(self.dev)

    def _loader(self, batches: StepBatches) -> DataLoader[StepBatch]:
        return DataLoader(
            batches,
            batch_size=None,
            num_workers=self._workers,
            pin_memory=self._pin_memory,
            persistent_workers=self._workers > 0,
        )


def evaluation_loader(batches: EvaluationBatches) -> DataLoader[MicroBatch]:
    """A split's batches, in the process that evaluates."""
    return DataLoader(batches, batch_size=None)
