"""Summarises how a run learned the end task: its last training losses, and when dev was best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from src.core.task_names import END_TASK
from src.report.reading.steps import read_steps
from src.run_folder.result import Result

LAST = 0.1
"""Share of a stage's steps, its last ones, whose losses are averaged."""


@dataclass(frozen=True)
class Learning:
    """How the last stage with the end task went.

    Attributes:
        end_task_loss: the end task's mean training loss in the last steps.
        auxiliary_loss: that of the auxiliary tasks, a mean over tasks and steps.
        best_at: share of the stage's steps after which the metric on dev was best.
    """

    end_task_loss: float | None = None
    auxiliary_loss: float | None = None
    best_at: float | None = None


def learning_of(folder: Path, result: Result) -> Learning:
    """Return how a finished run learned; what its step log does not hold is None.

    Raises:
        UserError: the step log cannot be read.
    """
    if not (folder / "steps.csv").is_file():
        return Learning()
    log = read_steps(folder, ["loss"]).dropna(subset="loss")
    trained = log[log.task == END_TASK].stage
    if trained.empty:
        return Learning()
    (stage,) = (stage for stage in result.stages if stage.name == trained.iloc[-1])
    log = log[(log.stage == stage.name) & (log.step > (1 - LAST) * stage.steps)]
    own, others = log[log.task == END_TASK].loss, log[log.task != END_TASK].loss
    return Learning(
        end_task_loss=None if own.empty else float(own.mean()),
        auxiliary_loss=None if others.empty else float(others.mean()),
        best_at=None if stage.best_step is None else stage.best_step / stage.steps,
    )
