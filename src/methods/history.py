"""The evaluations of a stage, through every interruption."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from src.evaluation.monitor import Monitor


class EvaluationHistory(pl.Callback):
    """Keeps the metrics of every evaluation on dev."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.evaluations: list[tuple[int, dict[str, float]]] = []

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Keep what was just logged under `dev/`."""
        if trainer.sanity_checking:
            return
        values = {
            name.removeprefix("dev/"): float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("dev/")
        }
        self.evaluations.append((trainer.global_step, values))

    def state_dict(self) -> dict[str, Any]:
        """Lightning puts this into its checkpoints."""
        return {"evaluations": [[step, values] for step, values in self.evaluations]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take it back."""
        self.evaluations = [(step, values) for step, values in state_dict["evaluations"]]

    def best(self) -> tuple[int, dict[str, float]]:
        """The evaluation with the best monitored metric, the earliest of equals."""
        monitor = self._monitor
        return max(self.evaluations, key=lambda one: (monitor.merit(one[1][monitor.name]), -one[0]))

    def series(self) -> list[tuple[int, float]]:
        """The monitored metric over the steps."""
        return [(step, values[self._monitor.name]) for step, values in self.evaluations]
