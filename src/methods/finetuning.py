"""Fine-tuning: the end task alone, the last stage of every baseline."""

from __future__ import annotations

from src.methods.module import TaskMixing


class Finetuning(TaskMixing):
    """Trains body and end-task head on the labelled examples."""

    trains_end_task = True
    trains_auxiliaries = False
