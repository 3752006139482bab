"""Counts updates that were skipped for non-finite numbers, and ends the run after too many."""

from __future__ import annotations

from typing import Any, NamedTuple

import lightning.pytorch as pl
import torch
from torch import Tensor

from tartan.core.device import is_cpu
from tartan.core.step import StepRecord
from tartan.errors import UserError
from tartan.methods.training_step import TrainingStep

SHOWN = 8
"""Maximum number of a batch's rows that a message names."""
_ADVICE = "lower the learning rates (body_lr, end_head_lr; in a program lr, head_lr)"


class Taken(NamedTuple):
    """A step that was taken.

    Attributes:
        step: its number.
        batch: number of its batch.
        finite: whether it counts, a scalar.
        record: its record.
        sizes: number of examples of each task in it.
    """

    step: int
    batch: int
    finite: Tensor
    record: StepRecord
    sizes: dict[str, int]


class StopAtNonFinite(pl.Callback):
    """Ends the run after `patience` skipped updates in a row, or where all were skipped.

    Every module has this callback, whether or not its Trainer was given one. On a GPU the flags are
    read every `read_every` steps, because reading waits for the device; the steps in between change
    nothing, because their updates are skipped as well.

    Raises:
        UserError: too many updates in a row were skipped, or all of a training that is over; the
            message names stage, step, task and batch.
    """

    def __init__(self, patience: int = 5, read_every: int = 50) -> None:
        self._patience, self._read_every = patience, read_every
        self._in_a_row = 0
        self._pending: list[Taken] = []
        self._last: Taken | None = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        """Store the step's flag, and read the flags when it is time."""
        assert isinstance(pl_module, TrainingStep)
        finite, record = pl_module.last_finite, pl_module.last_record
        if finite is None or record is None:
            return
        sizes = {name: own.examples for name, own in batch.tasks.items()}
        self._pending.append(Taken(trainer.global_step, batch.step, finite, record, sizes))
        if is_cpu(finite.device) or len(self._pending) >= self._read_every:
            self._read(pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Read the flags, because an evaluation waits for the device anyway."""
        if isinstance(pl_module, TrainingStep):
            self._read(pl_module)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Refuse a training that has changed nothing, however short it was.

        Also one that is resumed after its last step, where no hook of training is called.
        """
        assert isinstance(pl_module, TrainingStep)
        self._read(pl_module)
        if 0 < trainer.global_step == self._in_a_row:
            skipped = f"all {self._in_a_row} updates were skipped"
            raise UserError(self._message(pl_module, skipped))

    def state_dict(self) -> dict[str, Any]:
        """Return the count up to the last step, for Lightning's checkpoints."""
        in_a_row = self._in_a_row
        for taken in self._pending:
            in_a_row = 0 if bool(taken.finite) else in_a_row + 1
        return {"in_a_row": in_a_row}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the count of a checkpoint."""
        self._in_a_row = state_dict["in_a_row"]

    def _read(self, module: TrainingStep) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        flags = torch.stack([taken.finite for taken in pending]).tolist()
        for taken, finite in zip(pending, flags, strict=True):
            self._in_a_row = 0 if finite else self._in_a_row + 1
            self._last = taken
            if self._in_a_row >= self._patience:
                skipped = f"{self._in_a_row} updates in a row were skipped"
                raise UserError(self._message(module, skipped))

    def _message(self, module: TrainingStep, skipped: str) -> str:
        advice, last = _ADVICE, self._last
        if str(module.trainer.precision) not in ("32-true", "64-true"):
            advice += ", or use trainer.precision=32-true (in a program Trainer(precision=...))"
        if last is None:
            return f"stage {module.stage}: {skipped}, because numbers were not finite; {advice}"
        task, what = _culprit(last.record)
        if what is None:
            what = f"a weight of {type(module.weighting).__name__}"
            advice = "all losses and gradients are finite, so look at its options and its mix(step)"
        data = module.given_data()
        rows = ""
        if data is not None and task is not None:
            indices = data.steps(module.batch_needs).example_indices(task, last.batch)
            indices = indices[: last.sizes[task]]  # a sampled task has the first of a batch only
            more = "" if len(indices) <= SHOWN else ", ..."
            rows = f" (examples {', '.join(map(str, indices[:SHOWN]))}{more} of its training data)"
        return (
            f"stage {module.stage}, step {last.step}: {what} is not finite{rows}, and {skipped}; "
            f"{advice}"
        )


def _culprit(record: StepRecord) -> tuple[str | None, str | None]:
    """Return the first task with a non-finite loss, or else gradient, and which of these.

    Where only the weights are not finite, None stands for both.
    """
    for values, what in ((record.losses, "the loss"), (record.gradient_norms, "the gradient")):
        for task, finite in zip(record.tasks, values.isfinite().tolist(), strict=True):
            if not finite:
                return task, f"{what} of task {task}"
    if record.meta_loss is not None and not bool(record.meta_loss.isfinite()):
        return None, "the loss on the validation batch"
    if record.cosines is not None and not bool(record.cosines.isfinite().all()):
        return None, "the gradient on the validation batch"
    if not bool(record.weights.isfinite().all()):
        return None, None
    return None, "the mixed gradient"
