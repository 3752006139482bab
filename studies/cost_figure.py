"""Draws a part's test metric against the cost of training."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from studies.row import Row
from tartan.figures import axes_of, figure, figure_text, legend_below, style
from tartan.report.groups import metric_label


def draw_costs(rows: Sequence[Row]) -> Figure | None:
    """Draw each setting's mean over seeds at each budget, with one standard deviation.

    Runs without a cost (TF-IDF) are dotted horizontal lines.

    Args:
        rows: the rows of one part; each task and number of labels has a panel.

    Returns:
        None if no run has a cost.
    """
    if all(row.tflop is None for row in rows):
        return None
    panels = list(dict.fromkeys((row.task, row.labelled) for row in rows))
    settings = dict.fromkeys(row.setting for row in rows)
    picture = figure(2.2 + 4.4 * len(panels), 4.6)
    all_axes = axes_of(picture, 1, len(panels))
    for axes, (task, labelled) in zip(all_axes, panels, strict=True):
        own = [row for row in rows if (row.task, row.labelled) == (task, labelled)]
        for index, setting in enumerate(settings):
            _draw_setting(axes, [row for row in own if row.setting == setting], style(index))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
        axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
        axes.set_xlabel("TFLOP of training")
        axes.set_title(figure_text(f"{task}, {labelled:,} labels"), loc="left", fontsize=10)
    all_axes[0].set_ylabel(f"test {metric_label(rows[0].metric)} (%)")
    legend_below(picture, columns=4)
    return picture


def _draw_setting(axes: Axes, rows: Sequence[Row], drawn: dict[str, Any]) -> None:
    """Draw the budgets of a setting from the cheapest on, whose means a line joins."""
    if not rows:
        return
    label = figure_text(rows[0].setting)
    costs = {
        row.budget: fmean(r.tflop or 0.0 for r in rows if r.budget == row.budget) for row in rows
    }
    if not any(costs.values()):
        axes.axhline(_mean(rows), color=drawn["color"], linestyle=":", label=label)
        return
    budgets = sorted(costs, key=lambda budget: costs[budget])
    of_budgets = [[row for row in rows if row.budget == budget] for budget in budgets]
    axes.errorbar(
        [costs[budget] for budget in budgets],
        [_mean(own) for own in of_budgets],
        [100 * stdev(row.test for row in own) if len(own) > 1 else 0.0 for own in of_budgets],
        **drawn,
        capsize=3,
        label=label,
    )


def _mean(rows: Sequence[Row]) -> float:
    return 100 * fmean(row.test for row in rows)
