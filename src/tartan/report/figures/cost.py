"""Draws the metric against the cost of training: floating-point operations, and seconds."""

from __future__ import annotations

from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tartan.figures.style import Style, axes_of, figure, legend_below, plain, styles_of
from tartan.report.figures.learning_curves import draw_curves
from tartan.report.figures.spending import Cost, points_of
from tartan.report.reading.grouping import Benchmark, Setting

_AXES: dict[Cost, tuple[str, str]] = {
    "flops": ("FLOPs of all training passes", "FLOPs of training passes so far"),
    "seconds": ("seconds, evaluations on dev included", "seconds so far, evaluations included"),
}


def draw_cost(bench: Benchmark) -> Figure:
    """Draw each run's test metric against its cost, and below, dev against the cost so far.

    The lower row compares at equal cost: a vertical line meets what each setting had reached.
    Operations are left out where no run has counted them.
    """
    units = [u for u in _AXES if any(getattr(run.result, u) is not None for run in bench.runs)]
    picture = figure(4.2 * len(units) + (1.2 if len(units) == 1 else 0), 6.4)
    axes = axes_of(picture, 2, len(units), sharey="row")
    styles = styles_of([setting.key for setting in bench.settings])
    for column, unit in enumerate(units):
        upper, lower = axes[column], axes[column + len(units)]
        for setting in bench.settings:
            _points(upper, setting, styles[setting.key], unit)
            draw_curves(lower, setting, styles[setting.key], unit)
        whole, so_far = _AXES[unit]
        upper.set_xlabel(whole)
        lower.set_xlabel(so_far)
        for one in (upper, lower):
            one.set_xlim(left=0)
    axes[0].set_ylabel(f"test {bench.metric_label} (%)")
    axes[len(units)].set_ylabel(f"dev {bench.metric_label} (%)")
    picture.suptitle(plain(bench.label), x=0.01, ha="left", fontweight="bold", fontsize=10)
    legend_below(picture)
    return picture


def _points(axes: Axes, setting: Setting, style: Style, unit: Cost) -> None:
    points = points_of(setting, unit)
    if not points:
        return
    axes.plot(
        [x for x, *_ in points], [y for _, y, _ in points], linestyle="", marker=style.marker,
        markersize=5, markerfacecolor="white", color=style.colour, alpha=0.7,
    )  # fmt: skip
    axes.plot(
        fmean(x for x, *_ in points), fmean(y for _, y, _ in points), linestyle="",
        marker=style.marker, markersize=10, color=style.colour, label=plain(setting.short),
    )  # fmt: skip
