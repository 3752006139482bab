"""Makes interactive figures for the HTML page, with Plotly."""

from __future__ import annotations

import html
from statistics import fmean

import plotly.graph_objects as go

from src.figures.style import COLOURS, LINES, MARKERS, style
from src.report.figures.learning_curves import mean_curve
from src.report.figures.spending import Unit, evaluations, points_of
from src.report.labels import PART_LABELS
from src.report.reading.grouping import Benchmark, Setting
from src.report.reading.run import Run
from src.run_folder.result import PARTS

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


def anchor(run: Run, setting: Setting) -> str:
    """Return the HTML id of a run's row on the page."""
    return f"{setting.key}-seed-{run.result.seed}"


def seeds_figure(bench: Benchmark) -> go.Figure:
    """Return the test metric of every run, whole and unseen; a click leads to the run."""
    figure = go.Figure()
    settings = list(bench.settings)[::-1]
    labels = [html.escape(setting.label) for setting in settings]
    parts = PARTS[: 2 if bench.has_two_parts else 1]
    for part in parts:
        points = [
            (100 * score, label, run, setting)
            for setting, label in zip(settings, labels, strict=True)
            for run in setting.runs
            if (score := run.result.score(part)) is not None
        ]
        means = [
            (100 * fmean(scores.values()), label)
            for setting, label in zip(settings, labels, strict=True)
            if (scores := setting.scores(part))
        ]
        colour = COLOURS[0] if part == "whole" else COLOURS[1]
        symbol = "circle-open" if part == "whole" else "diamond-open"
        figure.add_scatter(
            x=[point[0] for point in points],
            y=[point[1] for point in points],
            mode="markers",
            name=PART_LABELS[part],
            marker={"color": colour, "symbol": symbol, "size": 9, "line": {"width": 2}},
            customdata=[anchor(run, setting) for _, _, run, setting in points],
            text=[html.escape(run.name) for _, _, run, _ in points],
            hovertemplate="%{x:.2f}<br>%{text}<extra></extra>",
        )
        figure.add_scatter(
            x=[mean for mean, _ in means],
            y=[label for _, label in means],
            mode="markers",
            name=f"mean, {PART_LABELS[part]}",
            marker={"color": colour, "symbol": "line-ns-open", "size": 18, "line": {"width": 3}},
            hovertemplate="mean %{x:.2f}<extra></extra>",
        )
    figure.update_yaxes(categoryorder="array", categoryarray=labels, automargin=True)
    figure.update_xaxes(title=f"test {html.escape(bench.metric_label)} (%)")
    _finished(figure, 150 + 34 * len(settings))
    return figure.update_layout(legend={"yanchor": "bottom", "y": 1.0}, margin={"t": 40})


def curves_figure(bench: Benchmark, unit: Unit) -> go.Figure | None:
    """Return the dev metric against the cost so far: a line for each seed, and their mean."""
    figure = go.Figure()
    for index, setting in enumerate(bench.settings):
        mean = mean_curve(setting, unit)
        if not mean:
            continue
        drawn = style(index)
        label = html.escape(setting.label)
        figure.add_scatter(
            x=[x for x, _ in mean],
            y=[100 * y for _, y in mean],
            name=label,
            legendgroup=setting.key,
            mode="lines+markers",
            line={"color": drawn.colour, "width": 3, "dash": _DASHES[drawn.line]},
            marker={"symbol": _SYMBOLS[drawn.marker], "size": 8},
            hovertemplate=f"mean of {label}<br>%{{x:.3s}}: %{{y:.2f}}<extra></extra>",
        )
        for run in setting.runs:
            points = evaluations(run.result, unit)
            figure.add_scatter(
                x=[x for x, _ in points],
                y=[100 * y for _, y in points],
                legendgroup=setting.key,
                showlegend=False,
                mode="lines",
                opacity=0.35,
                line={"color": drawn.colour, "width": 1},
                text=[html.escape(run.name)] * len(points),
                customdata=[anchor(run, setting)] * len(points),
                hovertemplate="%{text}<br>%{x:.3s}: %{y:.2f}<extra></extra>",
            )
    if not figure.data:
        return None
    figure.update_xaxes(title=_UNITS[unit], rangemode="tozero")
    figure.update_yaxes(title=f"dev {html.escape(bench.metric_label)} (%)")
    return _finished(figure, 440 + 12 * len(bench.settings))


def cost_figure(bench: Benchmark) -> go.Figure | None:
    """Return the test metric of every run against the floating-point operations of its training."""
    figure = go.Figure()
    for index, setting in enumerate(bench.settings):
        points = points_of(setting, "flops")
        if not points:
            continue
        drawn = style(index)
        figure.add_scatter(
            x=[x for x, *_ in points],
            y=[y for _, y, _ in points],
            name=html.escape(setting.label),
            mode="markers",
            marker={"color": drawn.colour, "symbol": _SYMBOLS[drawn.marker], "size": 10},
            text=[html.escape(run.name) for *_, run in points],
            customdata=[anchor(run, setting) for *_, run in points],
            hovertemplate="%{x:.3s}: %{y:.2f}<br>%{text}<extra></extra>",
        )
    if not figure.data:
        return None
    figure.update_xaxes(title=_UNITS["flops"].replace(" so far", ", in all"), rangemode="tozero")
    figure.update_yaxes(title=f"test {html.escape(bench.metric_label)} (%)")
    return _finished(figure, 400 + 12 * len(bench.settings))


def as_html(figure: go.Figure, name: str) -> str:
    """Return a `div` and the script that fills it; the page has to include the library already.

    Args:
        figure: the figure.
        name: the HTML id of the `div`.
    """
    options = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d"]}
    text: str = figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=options)
    return text


def _finished(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 15, "t": 15, "b": 50},
        legend={"orientation": "h", "yanchor": "top", "y": -0.18},
        font={"size": 13},
        xaxis_exponentformat="power",
        xaxis_title_font_size=13,
        yaxis_title_font_size=13,
        hovermode="closest",
    )
    return figure
