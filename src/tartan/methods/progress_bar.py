"""Shows the stage's name, and each task's loss and weight, in Lightning's progress bar."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import RichProgressBar

from tartan.core.device import is_cpu
from tartan.methods.training_step import TrainingStep

READ_EVERY = 10
"""Number of steps between two readings of the metrics, where reading waits for the device."""
SAY_EVERY_S = 30.0
"""Time between two lines about what remains, where there is no terminal for the bar [s]."""


class StageProgressBar(RichProgressBar):
    """Lightning's Rich progress bar with the stage's name and each task's loss and weight."""

    def __init__(self, stage: str) -> None:
        super().__init__(leave=True)
        self._stage = stage
        self._shown: dict[str, int | str | float | dict[str, float]] = {}
        self._began = self._said = 0.0
        self._first = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self._began = self._said = time.monotonic()
        self._first = trainer.global_step

    def _get_train_description(self, current_epoch: int) -> str:
        return self._stage

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        super().on_train_batch_end(trainer, *args)
        step, steps, now = trainer.global_step, trainer.max_steps, time.monotonic()
        if self.progress is not None and self.train_progress_bar_id is not None:
            # in a resumed epoch, Lightning's total is at most the steps that are left
            total = min(trainer.num_training_batches, args[-1] + 1 + steps - step)
            self.progress.update(self.train_progress_bar_id, total=total)
        alone = trainer.is_global_zero and not sys.stdout.isatty()
        if alone and now - self._said >= SAY_EVERY_S and step > self._first:
            self._said = now
            left = (now - self._began) / (step - self._first) * (steps - step)
            remains = timedelta(seconds=round(left))
            print(f"{self._stage}: step {step} of {steps}, {remains} left", flush=True)

    def get_metrics(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Return Lightning's metrics; on a GPU they are read now and then, which waits for it."""
        on_cpu = is_cpu(pl_module.device)
        if trainer.training and trainer.global_step % READ_EVERY and self._shown and not on_cpu:
            return self._shown
        values: dict[str, int | str | float | dict[str, float]]
        values = super().get_metrics(trainer, pl_module)
        values.pop("v_num", None)
        record = pl_module.last_record if isinstance(pl_module, TrainingStep) else None
        if record is not None and not on_cpu:  # where Lightning is not told them
            values |= {name: float(v) for name, v in pl_module.step_metrics(record).items()}
        self._shown = values
        return values
