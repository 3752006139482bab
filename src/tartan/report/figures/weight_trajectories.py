"""Draws how learned task weights move, one benchmark beside the other, as figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pandas as pd
from matplotlib.figure import Figure

from tartan.figures.style import axes_of, figure, plain, style
from tartan.figures.task_weights import draw_weight, tasks_of
from tartan.report.figures.end_task_weight import head_kind
from tartan.report.figures.weights import weights_of
from tartan.report.reading.grouping import Benchmark, Setting

_COLUMNS = 3


def learned(bench: Benchmark) -> Setting | None:
    """Return META-TARTAN's setting with most seeds, then the best on dev; None without any."""
    fitting = [
        setting
        for setting in bench.settings
        if setting.method == "meta_tartan"
        and setting.result.weighting == "meta"
        and not setting.variant
        and head_kind(setting) != "shared"
    ]
    return max(fitting, key=lambda s: (len(s.runs), s.dev_mean), default=None)


def draw_weight_trajectories(benches: Sequence[Benchmark], remarks: list[str]) -> Figure | None:
    """Draw a panel for each benchmark and a line for each task; None without learned weights.

    Bands are one standard deviation.
    """
    panels: list[tuple[Benchmark, Setting, pd.DataFrame]] = []
    for bench in benches:
        setting = learned(bench)
        weights = None if setting is None else weights_of(setting, remarks)
        if setting is not None and weights is not None:
            panels.append((bench, setting, weights))
    if not panels:
        return None
    columns = min(_COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    picture = figure(max(5.6, 3.9 * columns), 3.4 * rows)
    grid = axes_of(picture, rows, columns, sharey=True)
    highest = max(float((w["mean"] + w["deviation"]).max()) for _, _, w in panels)
    for axes, (bench, setting, weights) in zip(grid, panels, strict=False):
        tasks = tasks_of(weights)
        for index, task in enumerate(tasks):
            draw_weight(axes, weights, task, style(index), plain(task, 24))
        axes.axhline(1 / len(tasks), color="0.5", linewidth=1, linestyle=":")
        axes.set_ylim(0, max(1.0, highest) if highest > 0.7 else 1.15 * highest)
        axes.set_xlim(left=0)
        axes.set_xlabel("optimiser step")
        axes.set_title(plain(bench.label, 44), loc="left", fontweight="bold", fontsize=9.5, pad=18)
        axes.annotate(
            plain(setting.short), (0, 1), xytext=(0, 5), xycoords="axes fraction",
            textcoords="offset points", fontsize=8, color="0.35",
        )  # fmt: skip
        axes.legend(frameon=False, fontsize=8)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[::columns]:
        axes.set_ylabel("task weight α (dotted: equal)")
    return picture
