"""What happened in every step: kept on the device, written to loggers and CSV at intervals."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from src.methods.module import TaskMixing

COLUMNS = ("stage", "step", "task", "weight", "cosine", "loss", "gradient_norm")
"""Of the task-weight file: a row for each step and task."""


class StepLog(pl.Callback):
    """Collects each step's record without waiting for the device, and flushes now and then.

    Args:
        weights_file: CSV of the task weights over time, appended to where several tasks are mixed.
        flush_every: steps between flushes.
    """

    def __init__(self, weights_file: Path, flush_every: int) -> None:
        self._file, self._flush_every = weights_file, flush_every
        self._pending: list[tuple[int, dict[str, Tensor]]] = []

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any
    ) -> None:
        """Keep the step's record."""
        assert isinstance(pl_module, TaskMixing)
        record = pl_module.last_record
        if record is None:
            return
        vectors = {
            "loss": record.losses,
            "weight": record.weights,
            "gradient_norm": record.gradient_norms,
            "cosine": record.cosines,
            "effective_examples": record.effective_examples,
        }
        scalars = {"meta_loss": record.meta_loss, "meta_head_loss": record.meta_head_loss}
        values = {
            f"{kind}/{task.name}": vector[index]
            for kind, vector in vectors.items()
            if vector is not None
            for index, task in enumerate(pl_module.tasks)
        }
        values |= {name: value for name, value in scalars.items() if value is not None}
        self._pending.append((trainer.global_step, values))
        if len(self._pending) >= self._flush_every:
            self._flush(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write what is pending, so that the log is whole up to each evaluation."""
        if isinstance(pl_module, TaskMixing) and not trainer.sanity_checking:
            self._flush(trainer, pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the rest."""
        assert isinstance(pl_module, TaskMixing)
        self._flush(trainer, pl_module)

    def _flush(self, trainer: pl.Trainer, module: TaskMixing) -> None:
        if not self._pending:
            return
        names = list(self._pending[0][1])
        stacked = torch.stack(
            [torch.stack([values[name].float() for name in names]) for _, values in self._pending]
        )
        rows = [
            (step, dict(zip(names, numbers, strict=True)))
            for (step, _), numbers in zip(self._pending, stacked.tolist(), strict=True)
        ]
        self._pending.clear()
        for step, values in rows:
            for logger in trainer.loggers:
                logger.log_metrics(values, step)
        if len(module.tasks) > 1 and trainer.is_global_zero:
            self._append(rows, module)

    def _append(self, rows: list[tuple[int, dict[str, float]]], module: TaskMixing) -> None:
        new = not self._file.exists()
        with self._file.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(COLUMNS)
            for step, values in rows:
                for task in module.tasks:
                    kinds = ("weight", "cosine", "loss", "gradient_norm")
                    numbers = [values.get(f"{kind}/{task.name}") for kind in kinds]
                    cells = ["" if number is None else f"{number:.6g}" for number in numbers]
                    writer.writerow([module.stage, step, task.name, *cells])
