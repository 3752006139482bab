"""Fine-tuning on the end task alone, the last stage of every baseline."""

from __future__ import annotations

from tartan.methods.module import TaskMixing
from tartan.methods.optimisation import Optimisation


class FineTuning(TaskMixing):
    """Trains body and end-task head on the labelled examples."""

    trains_end_task = True
    trains_auxiliaries = False
    stage_name = "finetune"

    @classmethod
    def _usual(cls, lr: float, head_lr: float | None) -> Optimisation:
        return Optimisation(body_lr=lr, end_head_lr=lr if head_lr is None else head_lr)
