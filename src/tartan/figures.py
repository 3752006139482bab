"""Draws the weights of tasks over the steps, and defines the style of all figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tartan.core.task_names import END_TASK

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C00",
)  # fmt: skip
"""Okabe and Ito's palette, its yellow darkened for a white background."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", "-.", ":", (0, (5, 1)))
_RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "axes.axisbelow": True,
    "svg.hashsalt": "report",
}
_DARK = "@media (prefers-color-scheme: dark) {svg {filter: invert(.93) hue-rotate(180deg)}}</style>"
"""The end of an SVG's style, which turns lightness around and keeps hues."""


def style(index: int) -> dict[str, Any]:
    """Return the style of the `index`-th line: 64 pairs of colour and marker before one repeats."""
    other = index + index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": _MARKERS[other % len(_MARKERS)],
        "linestyle": _LINES[other % len(_LINES)],
    }


def figure(
    width: float, height: float, title: str = "", rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure of this size [inches] and its axes, row by row; `title` is from runs."""
    with mpl.rc_context(_RC):
        picture = Figure(figsize=(width, height), layout="constrained")
        axes = list(picture.subplots(rows, columns, squeeze=False, **options).flat)
    if title:
        picture.suptitle(figure_text(title, 100), x=0.01, ha="left", fontweight="bold", fontsize=10)
    return picture, axes


def figure_text(text: str, longest: int = 60) -> str:
    """Return text from runs such that Matplotlib shows no formulas; a long one lacks its middle."""
    half = longest // 2
    shown = text if len(text) <= longest else f"{text[: half - 1]}…{text[-half:]}"
    return shown.replace("$", r"\$")


def legend_below(picture: Figure, columns: int = 2) -> None:
    """Draw one legend below the figure, with each label of any of its axes once."""
    entries: dict[str, Artist] = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    columns = min(columns, max(1, len(entries)))
    picture.legend(
        entries.values(), entries, loc="outside lower center", ncols=columns, frameon=False
    )


def save(picture: Figure, *paths: Path) -> None:
    """Write images; an SVG has no date, and turns dark where the page around it is."""
    with mpl.rc_context(_RC):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if path.suffix == ".svg" else None
            picture.savefig(path, dpi=160, metadata=metadata)
            if path.suffix == ".svg":
                drawn = path.read_text(encoding="utf-8").replace("</style>", _DARK, 1)
                path.write_text(drawn, encoding="utf-8")


def mean_over_runs(runs: Sequence[pd.DataFrame], keys: list[str], value: str) -> pd.DataFrame:
    """Return mean and deviation over runs at each step, with the columns of `keys` and `x`.

    Steps that half of the runs or fewer reached are omitted, so that no mean is of the few that
    trained longest. `x` is its mean where the runs have it, else the step.
    """
    table = pd.concat(runs)
    table["x"] = table["x"] if "x" in table else table["step"]
    grouped = table.groupby([*keys, "step"], sort=False)
    frame = grouped.agg(
        mean=(value, "mean"), deviation=(value, "std"), x=("x", "mean"), count=(value, "count")
    ).reset_index()
    frame = frame[2 * frame["count"] > len(runs)].drop(columns="count")
    return frame.sort_values("step", kind="stable").fillna({"deviation": 0.0})


def draw_mean(axes: Axes, means: pd.DataFrame, drawn: dict[str, Any], label: str) -> None:
    """Draw a line of the columns x and mean, with a band of one standard deviation."""
    x, mean, spread = (means[name].to_numpy(float) for name in ("x", "mean", "deviation"))
    every = max(1, len(x) // 6)
    axes.plot(x, mean, linewidth=1.8, label=label, markersize=4.5, markevery=every, **drawn)
    axes.fill_between(x, mean - spread, mean + spread, color=drawn["color"], alpha=0.15, lw=0)


def draw_task_lines(axes: Axes, weights: pd.DataFrame) -> None:
    """Draw a line for each of the tasks with the largest last weights, and one of equal weights."""
    last = weights.groupby("task")["mean"].last()
    first = last[[END_TASK]] if END_TASK in last else last[:0]
    others = last.drop(first.index).nlargest(len(COLOURS) - len(first)).sort_index()
    for index, (task, weight) in enumerate(pd.concat([first, others]).items()):
        label = f"{figure_text(str(task), 40)}  {weight:.2f}"
        draw_mean(axes, weights[weights["task"] == task], style(index), label)
    _mark_equal(axes, 1 / len(last))


def draw_task_weights(
    log: Path,
    stage: str,
    evaluations: Sequence[tuple[int, float]],
    metric: str,
    title: str,
    target: Path,
) -> None:
    """Draw the weights in a stage of a run's step log, and below the dev metric by step."""
    table = pd.read_csv(log)
    table = table[(table["stage"] == stage) & table["weight"].notna()]
    picture, axes = figure(8, 5.4, title, rows=2, sharex=True, height_ratios=[2, 1])
    upper, lower = axes
    draw_task_lines(upper, mean_over_runs([table], ["task"], "weight"))
    upper.set_ylabel("task weight α (dotted: equal)")
    if evaluations:
        steps, values = zip(*evaluations, strict=True)
        lower.plot(steps, values, color="0.25", marker="o", markersize=4, linewidth=1.2)
        best = max(range(len(values)), key=values.__getitem__)
        lower.plot(steps[best], values[best], marker="o", markersize=9, mfc="none", mec=COLOURS[1])
        lower.set_title(f"ring: the best, {values[best]:.3f}", loc="right", fontsize=8)
    lower.set_ylabel(f"dev {metric.replace('_', '-')}")
    lower.set_xlabel("optimiser step")
    legend_below(picture, columns=3)
    save(picture, target)


def _mark_equal(axes: Axes, equal: float) -> None:
    """Mark equal weights, on an axis wide enough that noise does not look like a trend."""
    lowest, highest = axes.get_ylim()
    centre, half = (lowest + highest) / 2, max((highest - lowest) / 2, 0.06)
    axes.set_ylim(max(0.0, centre - half), centre + half)
    if abs(equal - centre) < half:  # weights that do not sum to 1 may be far from it
        axes.axhline(equal, color="0.6", linewidth=1, linestyle=":", zorder=0)
