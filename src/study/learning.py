"""Summarises how a run learned the end task: losses, gradients, and when dev was best."""

from __future__ import annotations

import math
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
        end_task_norm: norm of the end task's gradient with respect to the body, a median over
            steps.
        auxiliary_norm: that of the auxiliary tasks, a median over tasks and steps.
        end_task_cosine: cosine of the end task's gradient with the meta-gradient, a median over
            steps.
    """

    end_task_loss: float | None = None
    auxiliary_loss: float | None = None
    best_at: float | None = None
    end_task_norm: float | None = None
    auxiliary_norm: float | None = None
    end_task_cosine: float | None = None


def learning_of(folder: Path, result: Result) -> Learning:
    """Return how a finished run learned; what its step log does not hold is None.

    Raises:
        UserError: the step log cannot be read.
    """
    if not (folder / "steps.csv").is_file():
        return Learning()
    log = read_steps(folder, ["loss", "gradient_norm", "cosine"]).dropna(subset="loss")
    trained = log[log.task == END_TASK].stage
    if trained.empty:
        return Learning()
    (stage,) = (stage for stage in result.stages if stage.name == trained.iloc[-1])
    log = log[log.stage == stage.name]
    own, others = log[log.task == END_TASK], log[log.task != END_TASK]
    first = (1 - LAST) * stage.steps
    return Learning(
        end_task_loss=_known(own[own.step > first].loss.mean()),
        auxiliary_loss=_known(others[others.step > first].loss.mean()),
        best_at=None if stage.best_step is None else stage.best_step / stage.steps,
        end_task_norm=_known(own.gradient_norm.median()),
        auxiliary_norm=_known(others.gradient_norm.median()),
        end_task_cosine=_known(own.cosine.median()),
    )


def _known(value: float) -> float | None:
    """Return a number, or None for the NaN of no entries."""
    return None if math.isnan(value) else float(value)
