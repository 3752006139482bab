"""Stores the evaluations of a stage, also when it is interrupted and resumed."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.trainer.states import TrainerFn

from tartan.errors import UserError
from tartan.evaluation.monitor import Monitor


class EvaluationHistory(pl.Callback):
    """Stores the metrics of every evaluation on dev."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.evaluations: list[tuple[int, dict[str, float]]] = []

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Store what was just logged under `dev/`, unless `trainer.validate` was called."""
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        values = {
            name.removeprefix("dev/"): float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("dev/")
        }
        self.evaluations.append((trainer.global_step, values))

    def state_dict(self) -> dict[str, Any]:
        """Return the state for Lightning's checkpoints."""
        return {"evaluations": [[step, values] for step, values in self.evaluations]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.evaluations = [(step, values) for step, values in state_dict["evaluations"]]

    def best(self) -> tuple[int, dict[str, float]]:
        """Return the evaluation with the best monitored metric, the earliest of equals.

        Raises:
            UserError: there was no evaluation.
        """
        if not self.evaluations:
            raise UserError(
                "the training ended before any evaluation on dev, so that there is no best one; "
                "let it take longer (max_time, max_steps), or evaluate more often"
            )
        monitor = self._monitor
        return max(self.evaluations, key=lambda one: (monitor.merit(one[1][monitor.name]), -one[0]))

    def series(self) -> list[tuple[int, float]]:
        """Return the monitored metric by step."""
        return [(step, values[self._monitor.name]) for step, values in self.evaluations]
