"""Ends a training after too many updates that were skipped for non-finite numbers."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from tartan.core.device import is_cpu
from tartan.core.step import StepRecord
from tartan.errors import UserError
from tartan.methods.training_step import TrainingStep


class StopAtNonFinite(pl.Callback):
    """Ends the run after `patience` skipped updates in a row, or where all were skipped.

    Every module has this callback, whether or not its Trainer was given one. On a GPU the flags are
    read every `read_every` steps, because reading waits for the device; the steps in between change
    nothing, because their updates are skipped as well.
    """

    def __init__(self, patience: int = 5, read_every: int = 50) -> None:
        self._patience, self._read_every = patience, read_every
        self._in_a_row = 0
        self._pending: list[tuple[int, Tensor, StepRecord]] = []
        self._last = ""

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
        finite, record = pl_module.last_finite, pl_module.last_record
        self._pending.append((trainer.global_step, finite, record))
        if is_cpu(finite.device) or len(self._pending) >= self._read_every:
            self._read(pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._read(pl_module)  # an evaluation waits for the device anyway

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Refuse a training that has changed nothing, also one resumed after its last step."""
        self._read(pl_module)
        if 0 < trainer.global_step == self._in_a_row:
            self._stop(pl_module, f"all {self._in_a_row} updates were skipped")

    def state_dict(self) -> dict[str, Any]:
        """Return the count up to the last step, for Lightning's checkpoints."""
        in_a_row = self._in_a_row
        for _, finite, _ in self._pending:
            in_a_row = 0 if bool(finite) else in_a_row + 1
        return {"in_a_row": in_a_row}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._in_a_row = state_dict["in_a_row"]

    def _read(self, module: TrainingStep) -> None:
        pending, self._pending = self._pending, []
        flags = torch.stack([finite for _, finite, _ in pending]).tolist() if pending else []
        for (step, _, record), finite in zip(pending, flags, strict=True):
            self._in_a_row = 0 if finite else self._in_a_row + 1
            self._last = "" if finite else f", step {step}: {_culprit(record)} is not finite"
            if self._in_a_row >= self._patience:
                self._stop(module, f"{self._in_a_row} updates in a row were skipped")

    def _stop(self, module: TrainingStep, skipped: str) -> None:
        raise UserError(
            f"stage {module.stage}{self._last}, and {skipped}; lower the learning rates "
            "(body_lr, end_head_lr), or use precision 32-true"
        )


def _culprit(record: StepRecord) -> str:
    """Return the first number that is not finite, in words."""
    numbers = [
        (f"{what} of task {task}", value)
        for what, values in (("the loss", record.losses), ("the gradient", record.gradient_norms))
        for task, value in zip(record.tasks, values, strict=True)
    ]
    numbers += [
        ("the loss on the validation batch", record.meta_loss),
        ("the gradient on the validation batch", record.cosines),
        ("a weight", record.weights),
    ]
    for what, value in numbers:
        if value is not None and not bool(value.isfinite().all()):
            return what
    return "the mixed gradient"
