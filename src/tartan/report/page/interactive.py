"""Makes interactive figures for the HTML page, with Plotly."""

from __future__ import annotations

import html
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import plotly.graph_objects as go

from tartan.figures.style import COLOURS, LINES, MARKERS, style
from tartan.report.figures.learning_curves import mean_curve
from tartan.report.figures.spending import Unit, evaluations, points_of
from tartan.report.labels import PART_LABELS
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.run import Run
from tartan.run_folder.result import PARTS

_NAMES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
_SYMBOLS = dict(zip(MARKERS, _NAMES, strict=True))
"""Plotly's names of Matplotlib's markers."""
_DASHES = dict(zip(LINES, ("solid", "dash", "dashdot", "dot", "longdash"), strict=True))
"""Plotly's names of Matplotlib's lines."""
_UNITS: dict[Unit, str] = {
    "steps": "optimiser steps, earlier stages included",
    "seconds": "seconds so far, evaluations included",
    "flops": "FLOPs of training passes so far",
}
Point = tuple[float, float | str]


def anchor(run: Run, setting: Setting) -> str:
    """Return the HTML id of a run's row on the page."""
    return f"{setting.key}-seed-{run.result.seed}"


def seeds_figure(bench: Benchmark) -> go.Figure:
    """Return the test metric of every run, whole and unseen; a click leads to the run."""
    figure = go.Figure()
    settings = {html.escape(setting.label): setting for setting in bench.settings[::-1]}
    parts = PARTS[: 2 if bench.has_two_parts else 1]
    for part, colour, symbol in zip(parts, COLOURS, ("circle", "diamond"), strict=False):
        points: list[Point] = []
        runs, means = [], []
        for label, setting in settings.items():
            scores = setting.scores(part)
            points += [(100 * score, label) for score in scores.values()]
            runs += [(setting, run) for run in setting.runs if run.result.seed in scores]
            means += [(100 * fmean(scores.values()), label)] if scores else []
        marker = {"color": colour, "symbol": f"{symbol}-open", "size": 9, "line": {"width": 2}}
        bar = {"color": colour, "symbol": "line-ns-open", "size": 18, "line": {"width": 3}}
        name = PART_LABELS[part]
        _add(figure, points, "%{x:.2f}<br>%{text}", runs, name=name, mode="markers", marker=marker)
        _add(figure, means, "mean %{x:.2f}", name=f"mean, {name}", mode="markers", marker=bar)
    figure.update_yaxes(categoryorder="array", categoryarray=list(settings), automargin=True)
    _finished(figure, 150 + 34 * len(settings), f"test {bench.metric_label} (%)", None)
    return figure.update_layout(legend={"yanchor": "bottom", "y": 1.0}, margin={"t": 40})


def curves_figure(bench: Benchmark, unit: Unit) -> go.Figure | None:
    """Return the dev metric against the cost so far: a line for each seed, and their mean."""
    figure = go.Figure()
    for index, setting in enumerate(bench.settings):
        mean, drawn, label = mean_curve(setting, unit), style(index), html.escape(setting.label)
        if not mean:
            continue
        _add(
            figure, _percent(mean), f"mean of {label}<br>%{{x:.3s}}: %{{y:.2f}}",
            name=label, legendgroup=setting.key, mode="lines+markers",
            line={"color": drawn.colour, "width": 3, "dash": _DASHES[drawn.line]},
            marker={"symbol": _SYMBOLS[drawn.marker], "size": 8},
        )  # fmt: skip
        for run in setting.runs:
            points = _percent(evaluations(run.result, unit))
            _add(
                figure, points, "%{text}<br>%{x:.3s}: %{y:.2f}", [(setting, run)] * len(points),
                legendgroup=setting.key, showlegend=False, mode="lines", opacity=0.35,
                line={"color": drawn.colour, "width": 1},
            )  # fmt: skip
    figure.update_xaxes(rangemode="tozero")
    height = 440 + 12 * len(bench.settings)
    return _finished(figure, height, _UNITS[unit], f"dev {bench.metric_label} (%)")


def cost_figure(bench: Benchmark) -> go.Figure | None:
    """Return the test metric of every run against the floating-point operations of its training."""
    figure = go.Figure()
    for index, setting in enumerate(bench.settings):
        points, drawn = points_of(setting, "flops"), style(index)
        if points:
            _add(
                figure, [(x, y) for x, y, _ in points], "%{x:.3s}: %{y:.2f}<br>%{text}",
                [(setting, run) for *_, run in points],
                name=html.escape(setting.label), mode="markers",
                marker={"color": drawn.colour, "symbol": _SYMBOLS[drawn.marker], "size": 10},
            )  # fmt: skip
    figure.update_xaxes(rangemode="tozero")
    x, y = _UNITS["flops"].replace(" so far", ", in all"), f"test {bench.metric_label} (%)"
    return _finished(figure, 400 + 12 * len(bench.settings), x, y)


def as_html(figure: go.Figure, name: str) -> str:
    """Return a `div` and the script that fills it; the page has to include the library already.

    Args:
        figure: the figure.
        name: the HTML id of the `div`.
    """
    options = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d"]}
    text: str = figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=options)
    return text


def _percent(curve: Sequence[tuple[float, float]]) -> list[Point]:
    return [(x, 100 * y) for x, y in curve]


def _add(
    figure: go.Figure,
    points: Sequence[Point],
    hover: str,
    runs: Sequence[tuple[Setting, Run]] = (),
    **look: Any,
) -> None:
    """Add points, of which each leads to one of `runs` if there are any."""
    if runs:
        look["text"] = [html.escape(run.name) for _, run in runs]
        look["customdata"] = [anchor(run, setting) for setting, run in runs]
    x, y = [x for x, _ in points], [y for _, y in points]
    figure.add_scatter(x=x, y=y, hovertemplate=f"{hover}<extra></extra>", **look)


def _finished(
    figure: go.Figure, height: int, x_title: str, y_title: str | None
) -> go.Figure | None:
    """Set the size, the titles of the axes and the look; None for a figure without points."""
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 15, "t": 15, "b": 50},
        legend={"orientation": "h", "yanchor": "top", "y": -0.18},
        font={"size": 13},
        xaxis={"title": {"text": html.escape(x_title), "font": {"size": 13}}},
        yaxis={"title": {"text": y_title and html.escape(y_title), "font": {"size": 13}}},
        xaxis_exponentformat="power",
        hovermode="closest",
    )
    return figure if figure.data else None
