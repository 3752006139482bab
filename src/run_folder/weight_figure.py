"""A picture of a run: the task weights over time, and the dev metric they led to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
"""Okabe and Ito's palette, readable by the colour-blind."""


def draw_task_weights(
    weights_file: Path,
    stage: str,
    evaluations: Sequence[tuple[int, float]],
    metric: str,
    title: str,
    target: Path,
) -> None:
    """Draw the weights of `weights_file` (see `step_log`) as a PNG at `target`.

    Args:
        stage: the stage to draw.
        evaluations: `(step, value)` of the dev metric in the same stage.
        metric: the metric's name.
        title: of the whole figure.
    """
    table = pd.read_csv(weights_file)
    table = table[table["stage"] == stage]
    wide = table.pivot(index="step", columns="task", values="weight")
    # a task that a step has not sampled weighs what it did last
    wide = wide[list(dict.fromkeys(table["task"]))].ffill()
    if len(wide.columns) > len(COLOURS):
        wide = wide[_weightiest(wide, len(COLOURS))]
    figure = Figure(figsize=(8, 5.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    last_values = []
    for index, task in enumerate(wide.columns):
        colour = COLOURS[index % len(COLOURS)]
        upper.plot(wide.index, wide[task], color=colour, linewidth=2)
        last_values.append((float(wide[task].iloc[-1]), str(task), colour))
    upper.set_ylabel("task weight α")
    # wide enough that noise does not look like a trend
    lowest, highest = float(wide.min(axis=None)), float(wide.max(axis=None))
    centre, half = (lowest + highest) / 2, max(0.55 * (highest - lowest), 0.06)
    upper.set_ylim(max(0.0, centre - half), centre + half)
    equal = 1 / len(wide.columns)
    if abs(equal - centre) < half:  # weights that do not sum to 1 may be far from it
        upper.axhline(equal, color="0.6", linewidth=1, linestyle=":", zorder=0)
        upper.annotate(
            "equal", (0.005, equal), xycoords=("axes fraction", "data"),
            xytext=(0, 2), textcoords="offset points", color="0.45", fontsize=8,
        )  # fmt: skip
    _label_ends(upper, float(wide.index[-1]), last_values)

    if evaluations:
        steps, values = zip(*evaluations, strict=True)
        lower.plot(steps, values, color="0.25", marker="o", markersize=4, linewidth=1.2)
        best = max(range(len(values)), key=values.__getitem__)
        lower.plot(steps[best], values[best], marker="o", markersize=9, mfc="none", mec="#D55E00")
        lower.annotate(
            f"best {values[best]:.3f}", (steps[best], values[best]), xytext=(0, -14),
            textcoords="offset points", ha="center", color="#D55E00", fontsize=9,
        )  # fmt: skip
        lower.margins(y=0.3)
    lower.set_ylabel(f"dev {metric.replace('_', '-')}")
    lower.set_xlabel("optimiser step")
    for axes in (upper, lower):
        axes.grid(axis="y", color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=150)


def _weightiest(wide: pd.DataFrame, count: int) -> list[str]:
    """The first task, and of the others those that weigh most at the end."""
    first, *others = wide.columns
    at_the_end = wide[others].iloc[-1].sort_values(ascending=False, kind="stable")
    return [first, *at_the_end.index[: count - 1]]


def _label_ends(axes: Axes, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Name each line at its end, apart enough to be read."""
    bottom, top = axes.get_ylim()
    gap = 0.07 * (top - bottom)
    position = -1.0
    for value, name, colour in sorted(ends):
        position = max(value, position + gap)
        axes.annotate(
            f"{name}  {value:.2f}", (x, position), xytext=(6, 0), textcoords="offset points",
            va="center", color=colour, fontsize=10, annotation_clip=False,
        )  # fmt: skip
