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
    """Lightning's Rich progress bar with each task's loss, and its weight if tasks have any.

    Args:
        stage: the name shown while training.
    """

    def __init__(self, stage: str) -> None:
        super().__init__(leave=True)
        self._stage = stage
        self._shown: dict[str, int | str | float | dict[str, float]] = {}
        self._began = self._said = 0.0
        self._first = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the bar and the clock."""
        super().on_train_start(trainer, pl_module)
        self._began = self._said = time.monotonic()
        self._first = trainer.global_step

    def _get_train_description(self, current_epoch: int) -> str:
        return self._stage

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Move the bar on, and let its total count the steps of a resumed epoch from its start."""
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
        if trainer.is_global_zero and not sys.stdout.isatty():
            self._say_what_remains(trainer.global_step, trainer.max_steps)
        if self.progress is not None and self.train_progress_bar_id is not None:
            # Lightning's total is at most the steps that are left when it resumes
            last = batch_idx + 1 + trainer.max_steps - trainer.global_step
            total = min(trainer.num_training_batches, last)
            self.progress.update(self.train_progress_bar_id, total=total)

    def _say_what_remains(self, step: int, steps: int) -> None:
        """Print a line every half minute, from the pace of this stage so far."""
        now = time.monotonic()
        if now - self._said >= SAY_EVERY_S and step > self._first:
            self._said = now
            left = (now - self._began) / (step - self._first) * (steps - step)
            remains = timedelta(seconds=round(left))
            print(f"{self._stage}: step {step} of {steps}, {remains} left", flush=True)

    def get_metrics(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Return Lightning's metrics, `loss/x` and `weight/x` as `x: loss (weight)`.

        On a GPU they are read every `READ_EVERY` steps: reading one waits for all queued work.
        """
        skipped = trainer.global_step % READ_EVERY != 0 and bool(self._shown)
        if trainer.training and skipped and not is_cpu(pl_module.device):
            return self._shown
        values = super().get_metrics(trainer, pl_module)
        values.pop("v_num", None)
        record = pl_module.last_record if isinstance(pl_module, TrainingStep) else None
        if record is not None and not is_cpu(pl_module.device):  # where Lightning is not told them
            values |= {name: float(v) for name, v in pl_module.step_metrics(record).items()}
        shown: dict[str, int | str | float | dict[str, float]] = {}
        for name, value in values.items():
            kind, _, task = name.partition("/")
            if kind == "loss":
                weight = values.get(f"weight/{task}")
                share = "" if weight is None else f" ({weight:.2f})"
                shown[task] = f"{value:.2f}{share}"
            elif kind != "weight":
                shown[name] = value
        self._shown = shown
        return shown
