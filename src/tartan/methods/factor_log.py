"""Logs the factors of composed objectives' weights at each evaluation, as CSV and to loggers."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.trainer.states import TrainerFn

from tartan.core.weighting.aang import Factored
from tartan.files import write_text_durably
from tartan.methods.module import TaskMixing

COLUMNS = ("stage", "step", "factor", "logit")
"""Columns of the log, which has a row for each evaluation and factor (see `Factored.logits`)."""


class FactorLog(pl.Callback):
    """Writes learned factors at the stage's start and at each evaluation on dev.

    Weightings without factors get no file. A resumed stage first drops the rows of later steps.

    Args:
        file: the log, to which every stage appends.
        stage: the stage's name.
    """

    def __init__(self, file: Path, stage: str) -> None:
        self._file, self._stage = file, stage

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Drop the rows of steps that will be repeated; write the first rows of a new stage."""
        if trainer.is_global_zero:
            # a new stage has no rows, whatever a run that was killed early has left
            _keep_up_to(self._file, self._stage, trainer.global_step or -1)
        if trainer.global_step == 0:
            self._write(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the present factors."""
        if not trainer.sanity_checking and trainer.state.fn == TrainerFn.FITTING:
            self._write(trainer, pl_module)

    def _write(self, trainer: pl.Trainer, module: Any) -> None:
        weighting = module.weighting if isinstance(module, TaskMixing) else None
        if not isinstance(weighting, Factored) or not weighting.needs.meta_gradient:
            return
        names, logits = weighting.logits()
        values = dict(zip(names, logits.tolist(), strict=True))
        for logger in trainer.loggers:
            logger.log_metrics(
                {f"factor/{name}": v for name, v in values.items()}, trainer.global_step
            )
        if not trainer.is_global_zero:
            return
        new = not self._file.exists() or self._file.stat().st_size == 0
        with self._file.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            for name, value in values.items():
                writer.writerow([self._stage, trainer.global_step, name, f"{value:.6g}"])
            file.flush()
            os.fsync(file.fileno())


def _keep_up_to(path: Path, stage: str, step: int) -> None:
    """Drop the stage's rows after `step`, and an incomplete last line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        cells = line.split(",")
        whole = line.endswith("\n") and len(cells) == len(COLUMNS)
        if whole and (cells[0] != stage or (cells[1].isdecimal() and int(cells[1]) <= step)):
            kept.append(line)
    write_text_durably(path, "".join(kept))
