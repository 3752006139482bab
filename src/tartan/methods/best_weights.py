"""Stores the weights of the best evaluation, also when training is interrupted."""

from __future__ import annotations

from pathlib import Path

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.trainer.states import TrainerFn

from tartan.files import remove
from tartan.methods.history import EvaluationHistory


class BestWeights(Checkpoint):
    """Writes `best-STEP.ckpt` after each evaluation that is the best so far.

    The evaluation history, which a resumed stage takes from its checkpoint, decides which is best.
    So the file of an earlier best stays until a resume point knows of a better one. Files of steps
    after the resume point are removed when a stage resumes: on a machine that does not repeat
    roundings, they belong to another run.

    Args:
        folder: the stage's checkpoint folder.
        history: the stage's evaluations.
    """

    def __init__(self, folder: str | Path, history: EvaluationHistory) -> None:
        self._folder, self._history = Path(folder), history
        self._at_last_point: Path | None = None

    @property
    def best_model_path(self) -> str:
        """Return the best weights' file, for Lightning's `ckpt_path="best"`; empty without any."""
        best = self._best()
        return "" if best is None else str(best)

    def file(self, step: int) -> Path:
        """Return the file with the weights of the evaluation after `step`."""
        return self._folder / f"best-{step:08d}.ckpt"

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Remove files of steps after the one from which the stage resumes."""
        for path in self._files() if trainer.is_global_zero else ():
            if path > self.file(trainer.global_step):
                remove(path)
        self._at_last_point = self._best()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the weights, if this evaluation is better than all before."""
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        if self._history.best()[0] == trainer.global_step:
            trainer.save_checkpoint(self.file(trainer.global_step), weights_only=True)

    def point_taken(self) -> None:
        """Remove files that are not the best of either of the newest two resume points."""
        needed = (self._at_last_point, self._best())
        for path in self._files():
            if path not in needed:
                remove(path)
        self._at_last_point = self._best()

    def _best(self) -> Path | None:
        return self.file(self._history.best()[0]) if self._history.evaluations else None

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("best-*.ckpt"))
