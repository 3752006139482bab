"""Logs every step's numbers as CSV and to loggers, and learned factors to loggers."""

import csv
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from tartan.core.step import StepRecord
from tartan.core.weighting.aang import Factored
from tartan.errors import UserError
from tartan.files import write_text_durably

STEP_LOG = "steps.csv"
"""Name of the step log in the run folder."""
FLUSH_EVERY = 50
"""Number of steps after which their records are written."""
OF_A_TASK = {
    "weight": "weights", "cosine": "cosines", "loss": "losses", "gradient_norm": "gradient_norms",
}  # fmt: skip
"""Columns with a task's value, and where a `StepRecord` has those of all tasks."""
OF_A_STEP = ("meta_loss", "meta_head_loss", "skipped")
COLUMNS = ("stage", "step", "task", *OF_A_TASK, *OF_A_STEP)
"""Columns of the step log, which has a row for each step and task."""


class StepLog(pl.Callback):
    """Writes the record of every step of `stage` to `steps.csv`, to which all stages append.

    Steps are counted from 1. The Trainer's loggers get those that `log_every_n_steps` asks for,
    counted from 0 as Lightning counts. Records are read from the device and written every 50
    steps, and before a checkpoint is, after whose step a resumed stage goes on. Learned factors, if
    there are any, go to the loggers at the stage's start and at each evaluation on dev.
    """

    def __init__(self, folder: str | Path, stage: str) -> None:
        self._file, self._stage = Path(folder) / STEP_LOG, stage
        self._pending: list[tuple[int, str, list[Tensor | None]]] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        pl_module.logs_steps = False
        if trainer.is_global_zero:
            self.cut(trainer.global_step)
        if trainer.global_step == 0:
            self._log_factors(trainer, pl_module.weighting)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
        record: StepRecord = pl_module.last_record
        of_step = [record.meta_loss, record.meta_head_loss, ~pl_module.last_finite]
        of_tasks = [getattr(record, name) for name in OF_A_TASK.values()]
        for index, task in enumerate(record.tasks):
            values = [None if vector is None else vector[index] for vector in of_tasks]
            self._pending.append((trainer.global_step, task, [*values, *of_step]))
        if trainer.global_step % FLUSH_EVERY == 0:
            self._flush(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._flush(trainer)
        if not trainer.sanity_checking and trainer.state.fn == TrainerFn.FITTING:
            self._log_factors(trainer, pl_module.weighting)

    def on_save_checkpoint(self, trainer: pl.Trainer, *args: Any) -> None:
        self._flush(trainer)  # so that the log is as far as the checkpoint

    on_train_end = on_save_checkpoint

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        if isinstance(exception, UserError):  # the last steps show what went wrong
            self._flush(trainer)

    def _flush(self, trainer: pl.Trainer) -> None:
        if not self._pending:
            return
        # one transfer from the device for all numbers
        tensors = [v.float() for *_, values in self._pending for v in values if v is not None]
        numbers = iter(torch.stack(tensors).tolist())
        rows, to_loggers = [], defaultdict[int, dict[str, float]](dict)
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]
        for step, task, values in self._pending:
            read = [None if value is None else next(numbers) for value in values]
            rows.append([step, task, *map(_cell, read)])
            if every and step % every == 0:
                names = (*(f"{kind}/{task}" for kind in OF_A_TASK), *OF_A_STEP)
                named = zip(names, read, strict=True)
                to_loggers[step] |= {name: value for name, value in named if value is not None}
        self._pending.clear()
        for step, metrics in to_loggers.items():
            for logger in trainer.loggers:
                logger.log_metrics(metrics, step - 1)  # as Lightning counts
        if trainer.is_global_zero:
            self.append(rows)

    def cut(self, step: int) -> None:
        """Drop the stage's rows after `step`, which will be repeated, and what is no whole row."""
        if not self._file.exists():
            return
        lines = []
        for line in self._file.read_text(encoding="utf-8", errors="replace").splitlines(True):
            cells = line.split(",")
            if line.endswith("\n") and len(cells) == len(COLUMNS):
                of_stage = cells[0] == self._stage and cells[1].isdecimal()
                lines += [] if of_stage and int(cells[1]) > step else [line]
        write_text_durably(self._file, "".join(lines))

    def append(self, rows: Iterable[Sequence[object]]) -> None:
        """Append rows of `(step, ...)`, which are on the disk afterwards."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(COLUMNS)
            writer.writerows([self._stage, *row] for row in rows)
            file.flush()
            os.fsync(file.fileno())

    def _log_factors(self, trainer: pl.Trainer, weighting: Any) -> None:
        if isinstance(weighting, Factored) and weighting.needs.meta_gradient:
            names, logits = weighting.logits()
            values = dict(zip((f"factor/{n}" for n in names), logits.tolist(), strict=True))
            for logger in trainer.loggers:
                logger.log_metrics(values, trainer.global_step)


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
