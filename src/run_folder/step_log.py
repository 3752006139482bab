"""What happened in every step: kept on the device, written to loggers and CSV at intervals."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from src.methods.module import TaskMixing
from src.run_folder.durable import write_durably

OF_A_TASK = ("weight", "cosine", "loss", "gradient_norm", "effective_examples")
OF_A_STEP = ("meta_loss", "meta_head_loss", "skipped")
COLUMNS = ("stage", "step", "task", *OF_A_TASK, *OF_A_STEP)
"""Of the step log: a row for each step and task."""


class StepLog(pl.Callback):
    """Collects each step's record without waiting for the device, and flushes now and then.

    A checkpoint flushes it too, and a stage that goes on from one drops what was written of later
    steps, so that the log of a run that was stopped is that of one that was not.

    Args:
        file: the step log, appended to by every stage.
        stage: the stage's name.
        flush_every: steps between flushes.
    """

    def __init__(self, file: Path, stage: str, flush_every: int) -> None:
        self._file, self._stage, self._flush_every = file, stage, flush_every
        self._pending: list[tuple[int, tuple[str, ...], dict[str, Tensor]]] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Drop rows of steps that are still to come."""
        if trainer.is_global_zero:
            keep_up_to(self._file, self._stage, trainer.global_step, len(COLUMNS))

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
        finite = pl_module.last_finite
        scalars = {
            "meta_loss": record.meta_loss,
            "meta_head_loss": record.meta_head_loss,
            "skipped": None if finite is None else ~finite,
        }
        values = {
            f"{kind}/{task}": vector[index]
            for kind, vector in vectors.items()
            if vector is not None
            for index, task in enumerate(record.tasks)
        }
        values |= {name: value for name, value in scalars.items() if value is not None}
        self._pending.append((trainer.global_step, record.tasks, values))
        if len(self._pending) >= self._flush_every:
            self._flush(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write what is pending, so that the log is whole up to each evaluation."""
        if isinstance(pl_module, TaskMixing) and not trainer.sanity_checking:
            self._flush(trainer)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Write what is pending: a stage that goes on from here does not take these steps again."""
        self._flush(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the rest."""
        self._flush(trainer)

    def _flush(self, trainer: pl.Trainer) -> None:
        if not self._pending:
            return
        # steps need not have the same tasks; one transfer from the device for all numbers
        numbers = iter(
            torch.stack([v.float() for _, _, values in self._pending for v in values.values()])
            .flatten()
            .tolist()
        )
        rows = [
            (step, tasks, {name: next(numbers) for name in values})
            for step, tasks, values in self._pending
        ]
        self._pending.clear()
        for step, _, values_of_step in rows:
            for logger in trainer.loggers:
                logger.log_metrics(values_of_step, step)
        if trainer.is_global_zero:
            self._append(rows)

    def _append(self, rows: list[tuple[int, tuple[str, ...], dict[str, float]]]) -> None:
        new = not self._file.exists() or self._file.stat().st_size == 0
        with self._file.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            for step, tasks, values in rows:
                of_step = [_cell(values.get(kind)) for kind in OF_A_STEP]
                for task in tasks:
                    of_task = [_cell(values.get(f"{kind}/{task}")) for kind in OF_A_TASK]
                    writer.writerow([self._stage, step, task, *of_task, *of_step])
            file.flush()
            os.fsync(file.fileno())


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def keep_up_to(path: Path, stage: str, step: int, columns: int) -> None:
    """Drop the stage's rows after `step`, and a line that was being written when a run died.

    Args:
        path: a log whose first two of so many `columns` are the stage and the step.
    """
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        cells = line.split(",")
        whole = line.endswith("\n") and len(cells) == columns
        if whole and (cells[0] != stage or int(cells[1]) <= step):
            kept.append(line)
    write_durably(path, lambda scratch: scratch.write_text("".join(kept), encoding="utf-8"))
