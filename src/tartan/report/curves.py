"""Draws test scores, errors, and the dev metric against what was spent, of one benchmark."""

from __future__ import annotations

from itertools import zip_longest
from statistics import fmean
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tartan.evaluation.statistics import scores_by_class
from tartan.figures.style import (
    COLOURS,
    Style,
    axes_of,
    figure,
    figure_text,
    legend_below,
    styles_of,
)
from tartan.report.settings import PART_LABELS, Benchmark, Setting, plural
from tartan.runs.result import Part, Result

Unit = Literal["steps", "seconds", "flops"]
Curve = list[tuple[float, float]]
"""Pairs of the cost so far and a metric."""
_SPENT: dict[Unit, str] = {
    "steps": "optimiser steps of all stages",
    "flops": "FLOPs of training passes",
    "seconds": "seconds, with dev",
}
_MOST_CLASSES = 40


def draw_seeds(bench: Benchmark, part: Part) -> Figure | None:
    """Draw every run's test metric, a row for each setting, best mean on top; None without any."""
    styles = styles_of([setting.key for setting in bench.settings])
    scored = [setting for setting in bench.settings if setting.scores(part)]
    if not scored:
        return None
    scored.sort(key=lambda setting: setting.mean(part))
    picture = figure(7.2, 1.2 + 0.42 * len(scored), bench.label)
    (axes,) = axes_of(picture)
    for place, setting in enumerate(scored):
        values = [100 * value for value in setting.scores(part).values()]
        drawn, mean = styles[setting.key], fmean(values)
        # apart where values are close, in a fixed order
        heights = [place + 0.09 * ((index % 3) - 1) for index in range(len(values))]
        axes.plot(
            values, heights, linestyle="", marker=drawn.marker, markersize=6, color=drawn.colour,
            markerfacecolor="white", markeredgewidth=1.4,
        )  # fmt: skip
        axes.plot([mean, mean], [place - 0.28, place + 0.28], color=drawn.colour, linewidth=3)
        axes.annotate(f"{mean:.1f}", (mean, place + 0.3), ha="center", fontsize=8, color="0.2")
    labels = [figure_text(f"{s.short} ({plural(len(s.scores(part)), 'seed')})", 80) for s in scored]
    axes.set_yticks(range(len(scored)), labels)
    axes.set_ylim(-0.6, len(scored) - 0.2)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        f"{bench.metric_label} on the {PART_LABELS[part]} (%); bar: mean, point: a seed"
    )
    return picture


def draw_confusion(bench: Benchmark) -> Figure | None:
    """Draw the errors on test of the run that did best on dev, and the F1 of each class.

    None if no run has a confusion matrix, or there are too many classes.
    """
    kept = [
        (run.result.dev_score, setting.label, run.result)
        for setting in bench.settings
        for run in setting.runs
        if run.result.test.whole.confusion is not None
    ]
    if not kept or len(bench.result.labels) > _MOST_CLASSES:
        return None
    _, label, result = max(kept, key=lambda one: one[0])
    labels = [figure_text(one, 18) for one in result.labels]
    counts = np.array(result.test.whole.confusion, dtype=np.int64)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    side = max(3.0, 0.5 * len(labels) + 1.6)
    title = f"{label}, seed {result.seed}: best on dev of {bench.label}"
    picture = figure(side + 3.6, side, title)
    left, right = axes_of(picture, 1, 2, width_ratios=[side, 3.2])
    left.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, column in zip(*np.nonzero(counts), strict=True):
        left.text(
            column, row, f"{counts[row, column]}", ha="center", va="center", fontsize=7,
            color="white" if shares[row, column] > 0.55 else "0.15",
        )  # fmt: skip
    places = range(len(labels))
    left.set_xticks(places, labels, rotation=40, ha="right", rotation_mode="anchor")
    left.set_yticks(places, labels)
    left.grid(visible=False)
    left.set_xlabel("predicted")
    left.set_ylabel("label (colour: share of its examples)")
    scores = [100 * (one.f1 or 0.0) for one in scores_by_class(counts.tolist())]
    right.bar_label(right.barh(places, scores, color=COLOURS[0]), fmt="%.0f", fontsize=7)
    right.set_yticks(places, labels)
    right.invert_yaxis()
    right.set_xlim(0, 109)
    right.grid(visible=False, axis="y")
    right.set_xlabel("F1 (%)")
    return picture


def draw_cost(bench: Benchmark) -> Figure:
    """Draw each run's test metric against its cost, and below, dev against the cost so far.

    The lower row compares at equal cost: a vertical line meets what each setting had reached.
    Operations are left out where no run has counted them.
    """
    units = [u for u in _SPENT if any(_cost(run.result, u) is not None for run in bench.runs)]
    picture = figure(4.2 * len(units), 6.4, bench.label)
    axes = axes_of(picture, 2, len(units), sharey="row")
    styles = styles_of([setting.key for setting in bench.settings])
    for column, unit in enumerate(units):
        upper, lower = axes[column], axes[column + len(units)]
        for setting in bench.settings:
            _draw_points(upper, setting, styles[setting.key], unit)
            _draw_curves(lower, setting, styles[setting.key], unit)
        upper.set_xlabel(_SPENT[unit])
        lower.set_xlabel(f"{_SPENT[unit]}, so far")
        for one in (upper, lower):
            one.set_xlim(left=0)
    axes[0].set_ylabel(f"test {bench.metric_label} (%)")
    axes[len(units)].set_ylabel(f"dev {bench.metric_label} (%)")
    legend_below(picture)
    return picture


def _draw_points(axes: Axes, setting: Setting, style: Style, unit: Unit) -> None:
    points = [
        (spent, 100 * score)
        for run in setting.runs
        if (spent := _cost(run.result, unit)) is not None
        and (score := run.result.score("whole")) is not None
    ]
    if points:
        look: dict[str, Any] = {"linestyle": "", "marker": style.marker, "color": style.colour}
        axes.plot(*zip(*points, strict=True), markersize=5, mfc="white", alpha=0.7, **look)
        means = [[fmean(values)] for values in zip(*points, strict=True)]
        axes.plot(*means, markersize=10, label=figure_text(setting.short), **look)


def _cost(result: Result, unit: Unit) -> float | None:
    amounts = [getattr(stage, unit) for stage in result.stages]
    return None if None in amounts else float(sum(amounts))


def _draw_curves(axes: Axes, setting: Setting, style: Style, unit: Unit) -> None:
    """Draw a setting's dev metric against the cost so far: thin lines are seeds."""
    mean = mean_curve(setting, unit)
    if not mean:
        return
    for run in setting.runs:
        points = evaluations(run.result, unit)
        axes.plot(
            [x for x, _ in points], [100 * y for _, y in points], color=style.colour,
            linewidth=0.7, alpha=0.35,
        )  # fmt: skip
    axes.plot(
        [x for x, _ in mean], [100 * y for _, y in mean], color=style.colour, linewidth=2,
        linestyle=style.line, marker=style.marker, markersize=4.5, markevery=max(1, len(mean) // 8),
        label=figure_text(setting.short),
    )  # fmt: skip


def mean_curve(setting: Setting, unit: Unit) -> Curve:
    """Return the mean cost and mean metric of the k-th evaluation, over the seeds that had one.

    The curve ends where half of the seeds or fewer were still training, so that it is never the
    mean of the few that trained longest.
    """
    curves = [evaluations(run.result, unit) for run in setting.runs]
    places = ([point for point in place if point] for place in zip_longest(*curves))
    return [
        (fmean(x for x, _ in points), fmean(y for _, y in points))
        for points in places
        if 2 * len(points) > len(curves)
    ]


def evaluations(result: Result, unit: Unit) -> Curve:
    """Return cost so far and dev metric of each evaluation; none if the unit was not counted.

    The cost includes that of earlier stages; within a stage, it is taken to grow evenly with the
    steps.
    """
    amounts = [getattr(stage, unit) for stage in result.stages]
    if None in amounts:
        return []
    curve: Curve = []
    before = 0.0
    for stage, amount in zip(result.stages, amounts, strict=True):
        steps = max(1, stage.steps)
        curve += [(before + amount * step / steps, score) for step, score in stage.evaluations]
        before += amount
    return curve
