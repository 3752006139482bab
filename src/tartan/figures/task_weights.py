"""Draws task weights over the steps of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from tartan.core.task_names import END_TASK
from tartan.figures.style import COLOURS, Style, axes_of, figure, plain, style

_BEST = COLOURS[1]
"""Colour of the ring around the evaluation of the best checkpoint."""


def mean_weights(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return mean and standard deviation over runs of each task's weight at each step.

    Steps that half of the runs or fewer reached are omitted, so that no mean is of the few that
    trained longest.

    Args:
        runs: rows of a step log, of one stage; columns task, step and weight.

    Returns:
        Columns task, step, mean and deviation, which is 0 where there is one run.
    """
    grouped = pd.concat(runs).groupby(["task", "step"], sort=True)["weight"]
    frame = grouped.agg(mean="mean", deviation="std", count="count").reset_index()
    frame = frame[2 * frame["count"] > len(runs)].drop(columns="count")
    return frame.fillna({"deviation": 0.0})


def tasks_of(weights: pd.DataFrame) -> list[str]:
    """Return the tasks of `mean_weights`: the end task first, the others alphabetically."""
    return sorted(weights["task"].unique(), key=lambda task: (task != END_TASK, task))


def draw_weight(axes: Axes, weights: pd.DataFrame, task: str, drawn: Style, label: str) -> float:
    """Draw a task's line with a band of one standard deviation; return the line's last value."""
    of_task = weights[weights["task"] == task]
    steps = of_task["step"].to_numpy(dtype=float)
    mean = of_task["mean"].to_numpy(dtype=float)
    spread = of_task["deviation"].to_numpy(dtype=float)
    axes.plot(
        steps, mean, color=drawn.colour, linestyle=drawn.line, linewidth=1.8, label=label,
        marker=drawn.marker, markersize=4.5, markevery=max(1, len(steps) // 6),
    )  # fmt: skip
    axes.fill_between(
        steps, mean - spread, mean + spread, color=drawn.colour, alpha=0.15, linewidth=0
    )
    return float(mean[-1])


def draw_task_weights(
    weights_file: Path,
    stage: str,
    evaluations: Sequence[tuple[int, float]],
    metric: str,
    title: str,
    target: Path,
) -> None:
    """Draw the weights of one run over the dev metric that they led to, as a PNG at `target`.

    Args:
        weights_file: the run's step log (see `StepLog`).
        stage: the stage to draw.
        evaluations: `(step, value)` of the dev metric in the same stage.
        metric: the metric's name.
        title: title of the whole figure.
    """
    table = pd.read_csv(weights_file)
    weights = mean_weights([table[(table["stage"] == stage) & table["weight"].notna()]])
    count, tasks = weights["task"].nunique(), _weightiest(weights, len(COLOURS))
    picture = figure(8, 5.4)
    upper, lower = axes_of(picture, 2, 1, sharex=True, height_ratios=[2, 1])
    picture.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    last_values = []
    for index, task in enumerate(tasks):
        drawn = style(index)
        value = draw_weight(upper, weights, task, drawn, task)
        last_values.append((value, plain(task), drawn.colour))
    upper.set_ylabel("task weight α")
    # wide enough that noise does not look like a trend
    shown = weights[weights["task"].isin(tasks)]["mean"]
    lowest, highest = float(shown.min()), float(shown.max())
    centre, half = (lowest + highest) / 2, max(0.55 * (highest - lowest), 0.06)
    upper.set_ylim(max(0.0, centre - half), centre + half)
    equal = 1 / count
    if abs(equal - centre) < half:  # weights that do not sum to 1 may be far from it
        upper.axhline(equal, color="0.6", linewidth=1, linestyle=":", zorder=0)
        upper.annotate(
            "equal", (0.005, equal), xycoords=("axes fraction", "data"),
            xytext=(0, 2), textcoords="offset points", color="0.45", fontsize=8,
        )  # fmt: skip
    _label_ends(upper, float(weights["step"].max()), last_values)
    if evaluations:
        _draw_evaluations(lower, evaluations)
    lower.set_ylabel(f"dev {metric.replace('_', '-')}")
    lower.set_xlabel("optimiser step")
    for axes in (upper, lower):
        axes.grid(visible=False, axis="x")
    picture.savefig(target, dpi=150)


def _draw_evaluations(axes: Axes, evaluations: Sequence[tuple[int, float]]) -> None:
    """Draw the dev metric, and a ring around the evaluation of the best checkpoint."""
    steps, values = zip(*evaluations, strict=True)
    axes.plot(steps, values, color="0.25", marker="o", markersize=4, linewidth=1.2)
    best = max(range(len(values)), key=values.__getitem__)
    axes.plot(steps[best], values[best], marker="o", markersize=9, mfc="none", mec=_BEST)
    axes.annotate(
        f"best {values[best]:.3f}", (steps[best], values[best]), xytext=(0, -14),
        textcoords="offset points", ha="center", color=_BEST, fontsize=9,
    )  # fmt: skip
    axes.margins(y=0.3)


def _weightiest(weights: pd.DataFrame, count: int) -> list[str]:
    """Return the first task and, of the others, those with the largest weights at the end."""
    first, *others = tasks_of(weights)
    last = weights.groupby("task")["mean"].last()
    if 1 + len(others) > count:
        others = sorted(others, key=lambda task: -last[task])[: count - 1]
    return [first, *others]


def _label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Write each line's name at its end, far enough apart to be read."""
    bottom, top = axes.get_ylim()
    gap = 0.07 * (top - bottom)
    position = -1.0
    for value, name, colour in sorted(ends):
        position = max(value, position + gap)
        axes.annotate(
            f"{name}  {value:.2f}", (x, position), xytext=(6, 0), textcoords="offset points",
            va="center", color=colour, fontsize=10, annotation_clip=False,
        )  # fmt: skip
