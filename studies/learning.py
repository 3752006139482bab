"""Summarises how a run learned the end task: losses, gradients, and when dev was best."""

from __future__ import annotations

import math
from pathlib import Path

from tartan.core.task_names import END_TASK
from tartan.report.runs import read_steps
from tartan.run_folder.result import Result

LAST = 0.1
"""Share of a stage's steps, its last ones, whose losses are averaged."""


def learning_of(folder: Path, result: Result) -> dict[str, float | None]:
    """Return how a finished run learned, as entries of its `Row`.

    They are of the last stage with the end task, and None where its step log does not hold them;
    there are none without that stage, or without a log.

    Raises:
        UserError: the step log cannot be read.
    """
    if not (folder / "steps.csv").is_file():
        return {}
    log = read_steps(folder, ["loss", "gradient_norm", "cosine"]).dropna(subset="loss")
    trained = log[log.task == END_TASK].stage
    if trained.empty:
        return {}
    (stage,) = (stage for stage in result.stages if stage.name == trained.iloc[-1])
    log = log[log.stage == stage.name]
    own, others = log[log.task == END_TASK], log[log.task != END_TASK]
    first = (1 - LAST) * stage.steps
    return {
        "end_task_loss": _known(own[own.step > first].loss.mean()),
        "auxiliary_loss": _known(others[others.step > first].loss.mean()),
        "best_at": None if stage.best_step is None else stage.best_step / stage.steps,
        "end_task_norm": _known(own.gradient_norm.median()),
        "auxiliary_norm": _known(others.gradient_norm.median()),
        "end_task_cosine": _known(own.cosine.median()),
    }


def _known(value: float) -> float | None:
    """Return a number, or None for the NaN of no entries."""
    return None if math.isnan(value) else float(value)
