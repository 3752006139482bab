"""Draws the weights of tasks, and of the factors of composed objectives (AANG), over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import softmax

from tartan.core.task_names import END_TASK, JOINT, SEPARATOR, STAGES
from tartan.figures.style import COLOURS, axes_of, figure, figure_text, legend_below, save, style

_TITLES = {
    "data": "data",
    "transform": "input transform",
    "representation": "representation",
    "output": "output",
    "two_way": "end task and auxiliaries",
}
_RANKED = 12
"""Maximum number of objectives in the ranking."""


def mean_over_runs(runs: Sequence[pd.DataFrame], keys: list[str], value: str) -> pd.DataFrame:
    """Return mean and standard deviation over runs at each step.

    Steps that half of the runs or fewer reached are omitted, so that no mean is of the few that
    trained longest. Columns are `keys`, which are kept apart, step, mean, deviation, which is 0
    where there is one run, and x: its mean where the runs have it, else the step.
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


def draw_task_lines(axes: Axes, weights: pd.DataFrame, most: int = len(COLOURS)) -> None:
    """Draw a line for each task, the end task first, and a dotted one for equal weights.

    Of more than `most` tasks, those with the largest last weights are drawn.
    """
    last = weights.groupby("task")["mean"].last()
    first = last[[END_TASK]] if END_TASK in last else last[:0]
    others = last.drop(first.index)
    others = others.nlargest(most - len(first)).sort_index()
    for index, (task, weight) in enumerate(pd.concat([first, others]).items()):
        label = f"{figure_text(str(task), 40)}  {weight:.2f}"
        draw_mean(axes, weights[weights["task"] == task], style(index), label)
    _mark_equal(axes, 1 / len(last))


def draw_task_weights(
    weights_file: Path,
    stage: str,
    evaluations: Sequence[tuple[int, float]],
    metric: str,
    title: str,
    target: Path,
) -> None:
    """Draw the weights in a stage of a run's step log, as a PNG at `target`.

    Below stands the dev metric that they led to, of which `evaluations` has `(step, value)`.
    """
    table = pd.read_csv(weights_file)
    table = table[(table["stage"] == stage) & table["weight"].notna()]
    picture = figure(8, 5.4, title)
    upper, lower = axes_of(picture, 2, 1, sharex=True, height_ratios=[2, 1])
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


def shares_of(logits: pd.DataFrame) -> pd.DataFrame:
    """Return each factor's share among the choices of its kind: a softmax of the logits.

    `logits` has the columns step, factor (`STAGE/CHOICE`) and logit, of one run and stage; the
    result has step, stage, choice and share. The share of an objective is that of the auxiliary
    tasks' total weight, from the sum of its factors.
    """
    table = logits[["step", "logit"]].copy()
    table[["stage", "choice"]] = logits["factor"].str.split("/", n=1, expand=True)
    of_factors = logits.set_index(["step", "factor"])["logit"]
    joint = table[table["stage"] == JOINT]
    parts = joint["choice"].str.split(SEPARATOR)
    table.loc[joint.index, "logit"] += sum(
        of_factors.reindex(zip(joint["step"], f"{stage}/" + parts.str[i], strict=True)).to_numpy()
        for i, stage in enumerate(STAGES)
    )
    grouped = table.groupby(["stage", "step"], sort=False)["logit"]
    table["share"] = grouped.transform(lambda logits: softmax(logits.to_numpy()))
    return table.drop(columns="logit")


def factor_weights_figure(runs: Sequence[pd.DataFrame], title: str) -> Figure:
    """Draw the mean of `shares_of` each run: a line a choice, and the objectives' ranking."""
    table = mean_over_runs(runs, ["stage", "choice"], "share")
    table["label"] = [figure_text(str(one).replace("_", " "), 100) for one in table["choice"]]
    picture = figure(11, 6.4, title)
    *panels, ranking = axes_of(picture, 2, 3)
    for axes, (stage, words) in zip(panels, _TITLES.items(), strict=True):
        choices = table[table["stage"] == stage].groupby("label", sort=False)
        for index, (label, means) in enumerate(choices):
            draw_mean(axes, means, style(index), str(label))
        _mark_equal(axes, 1 / max(1, len(choices)))
        axes.set_title(words, loc="left", fontsize=10)
        axes.set_xlabel("optimiser step")
        axes.set_ylabel("share (dotted: equal)")
        axes.legend(frameon=False, fontsize=8)
    objectives = table[table["stage"] == JOINT]
    last = objectives[objectives["step"] == objectives["step"].max()].sort_values("mean")[-_RANKED:]
    names = last["label"].str.replace(SEPARATOR, " · ")
    ranking.barh(names, last["mean"], xerr=last["deviation"], color=COLOURS[0], height=0.7)
    ranking.axvline(1 / objectives["choice"].nunique(), color="0.6", linewidth=1, linestyle=":")
    ranking.tick_params(axis="y", labelsize=7)
    ranking.set_title(f"objectives, the {len(last)} first", loc="left", fontsize=10)
    ranking.set_xlabel("share of the auxiliaries' weight")
    return picture


def draw_factor_weights(log: Path, stage: str, title: str, target: Path) -> None:
    """Draw the factors of a stage of a run's factor log as a PNG at `target`."""
    table = pd.read_csv(log)
    table = table[table["stage"] == stage].drop_duplicates(["step", "factor"], keep="last")
    save(factor_weights_figure([shares_of(table)], title), target)


def _mark_equal(axes: Axes, equal: float) -> None:
    """Mark equal weights, on an axis wide enough that noise does not look like a trend."""
    lowest, highest = axes.get_ylim()
    centre, half = (lowest + highest) / 2, max((highest - lowest) / 2, 0.06)
    axes.set_ylim(max(0.0, centre - half), centre + half)
    if abs(equal - centre) < half:  # weights that do not sum to 1 may be far from it
        axes.axhline(equal, color="0.6", linewidth=1, linestyle=":", zorder=0)
