"""Draws the metric on dev during training: a line for each seed, and their mean."""

from __future__ import annotations

from itertools import zip_longest
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tartan.figures.style import (
    Style,
    axes_of,
    figure,
    legend_below,
    plain,
    styles_of,
    title,
)
from tartan.report.figures.spending import Curve, Unit, evaluations
from tartan.report.reading.grouping import Benchmark, Setting


def mean_curve(setting: Setting, unit: Unit) -> Curve:
    """Return the mean cost and mean metric of the k-th evaluation, over the seeds that had one.

    The curve ends where half of the seeds or fewer were still training, so that it is never the
    mean of the few that trained longest.
    """
    found = [evaluations(run.result, unit) for run in setting.runs]
    places = ([point for point in place if point] for place in zip_longest(*found))
    return [
        (fmean(x for x, _ in points), fmean(y for _, y in points))
        for points in places
        if 2 * len(points) > len(found)
    ]


def draw_learning_curves(bench: Benchmark) -> Figure | None:
    """Draw dev against steps, earlier stages included; return None without evaluations."""
    picture = figure(7.2, 4.4)
    (axes,) = axes_of(picture)
    styles = styles_of([setting.key for setting in bench.settings])
    drawn = [draw_curves(axes, s, styles[s.key], "steps") for s in bench.settings]
    if not any(drawn):
        return None
    axes.set_xlabel("optimiser steps, earlier stages included")
    axes.set_ylabel(f"dev {bench.metric_label} (%)")
    axes.set_xlim(left=0)
    title(axes, bench.label)
    legend_below(picture)
    return picture


def draw_curves(axes: Axes, setting: Setting, style: Style, unit: Unit) -> bool:
    """Draw a setting's curves; return whether it has any."""
    mean = mean_curve(setting, unit)
    if not mean:
        return False
    for run in setting.runs:
        points = evaluations(run.result, unit)
        axes.plot(
            [x for x, _ in points], [100 * y for _, y in points],
            color=style.colour, linewidth=0.7, alpha=0.35,
        )  # fmt: skip
    axes.plot(
        [x for x, _ in mean], [100 * y for _, y in mean], color=style.colour, linewidth=2,
        linestyle=style.line, marker=style.marker, markersize=4.5, markevery=max(1, len(mean) // 8),
        label=plain(setting.short),
    )  # fmt: skip
    return True
