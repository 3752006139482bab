"""Ends a training after too many updates that were skipped for non-finite numbers."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch

from tartan.core.device import is_cpu
from tartan.errors import UserError


class StopAtNonFinite(pl.Callback):
    """Ends the run after `patience` skipped updates in a row, or where all were skipped.

    Every module has this callback. On a GPU the count is read every `read_every` steps, because
    reading waits for the device; until then updates are skipped as well.
    """

    def __init__(self, patience: int = 5, read_every: int = 50) -> None:
        self._patience, self._read_every = patience, read_every
        self._in_a_row = torch.zeros((), dtype=torch.int64)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, *args: Any) -> None:
        finite = pl_module.last_finite
        self._in_a_row = torch.where(finite, 0, self._in_a_row + 1)
        if is_cpu(finite.device) or trainer.global_step % self._read_every == 0:
            self._check(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._check(trainer, pl_module)  # an evaluation waits for the device anyway

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._check(trainer, pl_module, has_ended=True)  # perhaps resumed after its last step

    def state_dict(self) -> dict[str, Any]:
        return {"in_a_row": int(self._in_a_row)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._in_a_row = torch.tensor(state_dict["in_a_row"])

    def _check(self, trainer: pl.Trainer, module: Any, has_ended: bool = False) -> None:
        skipped, step = int(self._in_a_row), trainer.global_step
        if skipped < self._patience and not (has_ended and 0 < step == skipped):
            return
        last, record = {}, module.last_record
        if record is not None:
            last = dict(zip(record.tasks, record.losses.tolist(), strict=True))
        raise UserError(
            f"stage {module.stage}, step {step} (losses {last}): {skipped} updates in a row were "
            "skipped, because a number was not finite; lower the learning rates (body_lr, "
            "end_head_lr), or use precision 32-true"
        )
