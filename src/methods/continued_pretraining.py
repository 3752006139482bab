"""Continued pre-training: DAPT on domain text, TAPT on the task's own (Gururangan et al., 2020)."""

from __future__ import annotations

from src.methods.module import TaskMixing


class ContinuedPretraining(TaskMixing):
    """Trains body and auxiliary heads on unlabelled text; the end task takes no part.

    The stage runs its full budget: there is no end-task metric to stop by, and its last state
    feeds the next stage.
    """

    trains_end_task = False
    trains_auxiliaries = True
    stage_name = "pretrain"

    def on_fit_end(self) -> None:
        """Leave the trained masked-LM head with the encoder, for later tasks to start from."""
        self.encoder.adopt(self.tasks[0].head)
