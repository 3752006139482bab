"""Task weights over the steps of joint training, mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from src.errors import UserError
from src.report.figures.style import Style
from src.report.settings import Setting
from src.report.steps import read_steps

END_TASK = "end_task"
"""The end task's name in every step log."""


def weights_of(setting: Setting, remarks: list[str]) -> pd.DataFrame | None:
    """Mean and standard deviation over seeds of each task's weight at each step.

    Args:
        remarks: gets a line for each run whose step log cannot be read.

    Returns:
        Columns task, step, mean, deviation, of the last stage in which tasks were mixed; None if
        there is none.
    """
    tables = []
    for run in setting.runs:
        mixed = [stage.name for stage in run.result.stages if stage.final_task_weights]
        if not mixed:
            continue
        try:
            table = read_steps(run.folder)
        except UserError as error:
            remarks.append(f"{run.name}: no task weights drawn ({error})")
            continue
        tables.append(table[(table["stage"] == mixed[-1]) & table["weight"].notna()])
    if not tables:
        return None
    joined = pd.concat(tables)
    if joined.empty:
        return None
    grouped = joined.groupby(["task", "step"], sort=True)["weight"]
    frame = grouped.agg(mean="mean", deviation="std").reset_index()
    return frame.fillna({"deviation": 0.0})


def tasks_of(weights: pd.DataFrame) -> list[str]:
    """Its tasks: the end task first, the others in the order of the alphabet."""
    return sorted(weights["task"].unique(), key=lambda task: (task != END_TASK, task))


def draw_weight(
    axes: Axes, weights: pd.DataFrame, task: str, style: Style, label: str
) -> Sequence[float]:
    """A line and its band; returns its last point."""
    of_task = weights[weights["task"] == task]
    steps = of_task["step"].to_numpy(dtype=float)
    mean = of_task["mean"].to_numpy(dtype=float)
    spread = of_task["deviation"].to_numpy(dtype=float)
    axes.plot(
        steps, mean, color=style.colour, linestyle=style.line, linewidth=1.8, label=label,
        marker=style.marker, markersize=4.5, markevery=max(1, len(steps) // 6),
    )  # fmt: skip
    axes.fill_between(
        steps, mean - spread, mean + spread, color=style.colour, alpha=0.15, linewidth=0
    )
    return float(steps[-1]), float(mean[-1])
