"""Keeps the evaluations of a stage, and the weights of the best one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from lightning.pytorch.trainer.states import TrainerFn

from tartan.errors import UserError
from tartan.evaluation.monitor import Monitor


class BestWeights(Checkpoint):
    """Writes `best-STEP.ckpt` after each evaluation on dev that is the best so far.

    The file of an earlier best stays until a resume point knows of a better one. Files of steps
    after the resume point are removed when a stage resumes: on a machine that does not repeat
    roundings, they belong to another run.

    Args:
        folder: the stage's checkpoint folder.
        monitor: the metric that decides which evaluation is best.

    Attributes:
        evaluations: step and metrics of every evaluation.
    """

    def __init__(self, folder: str | Path, monitor: Monitor) -> None:
        self._folder, self._monitor = Path(folder), monitor
        self.evaluations: list[tuple[int, dict[str, float]]] = []
        self._at_last_point: Path | None = None

    @property
    def best_model_path(self) -> str:
        """The best weights' file, for Lightning's `ckpt_path="best"`; empty without any."""
        return str(self._best_file() or "")

    def best(self) -> tuple[int, dict[str, float]]:
        """Return step and metrics of the best evaluation, the earliest of equals."""
        if not self.evaluations:
            raise UserError(
                "the training ended before any evaluation on dev, so that there is no best one; "
                "let it take longer (max_time, max_steps), or evaluate more often"
            )
        monitor = self._monitor
        return max(self.evaluations, key=lambda one: (monitor.merit(one[1][monitor.name]), -one[0]))

    def series(self) -> list[tuple[int, float]]:
        return [(step, values[self._monitor.name]) for step, values in self.evaluations]

    def file(self, step: int) -> Path:
        return self._folder / f"best-{step:08d}.ckpt"

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for path in self._files() if trainer.is_global_zero else ():
            if path > self.file(trainer.global_step):
                path.unlink()
        self._at_last_point = self._best_file()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        values = {
            name.removeprefix("dev/"): float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("dev/")
        }
        self.evaluations.append((trainer.global_step, values))
        if self.best()[0] == trainer.global_step:
            trainer.save_checkpoint(self.file(trainer.global_step), weights_only=True)

    def point_taken(self) -> None:
        """Remove files that are not the best of either of the newest two resume points."""
        needed = (self._at_last_point, self._best_file())
        for path in self._files():
            if path not in needed:
                path.unlink()
        self._at_last_point = self._best_file()

    def state_dict(self) -> dict[str, Any]:
        return {"evaluations": [[step, values] for step, values in self.evaluations]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.evaluations = [(step, values) for step, values in state_dict["evaluations"]]

    def _best_file(self) -> Path | None:
        return self.file(self.best()[0]) if self.evaluations else None

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("best-*.ckpt"))


def keep_best(trainer: pl.Trainer, monitor: str, mode: str) -> None:
    """Make the only checkpoint callback keep the best on dev, if it does not say what to keep."""
    checkpoints = [c for c in trainer.callbacks if isinstance(c, ModelCheckpoint)]
    if len(checkpoints) != 1 or type(checkpoints[0]) is not ModelCheckpoint:
        return
    (callback,) = checkpoints
    after_evaluations = not (callback._every_n_train_steps or callback._save_on_train_epoch_end)
    if callback.monitor is None and callback.save_top_k == 1 and after_evaluations:
        callback.monitor, callback.mode = monitor, mode
        callback.kth_value = torch.tensor(-torch.inf if mode == "max" else torch.inf)
