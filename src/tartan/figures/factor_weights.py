"""Draws the weights of composed objectives (AANG): a panel for each kind of part, and a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import softmax

from tartan.core.task_names import JOINT, SEPARATOR, STAGES
from tartan.figures.style import COLOURS, axes_of, figure, plain

TWO_WAY = "two_way"
_TITLES = {
    "data": "data",
    "transform": "input transform",
    "representation": "representation",
    "output": "output",
    TWO_WAY: "end task and auxiliaries",
}
_SHOWN = 12
"""Maximum number of objectives in the ranking."""


def shares_of(logits: pd.DataFrame) -> pd.DataFrame:
    """Return each factor's share among the choices of its kind: a softmax of the logits.

    Args:
        logits: columns step, factor (`STAGE/CHOICE`) and logit, of one run and stage.

    Returns:
        Columns step, stage, choice and share. The share of an objective is that of the auxiliary
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
    table["share"] = grouped.transform(lambda own: softmax(own.to_numpy()))
    return table.drop(columns="logit")


def factor_weights_figure(runs: Sequence[pd.DataFrame], title: str) -> Figure:
    """Draw a line for each choice, with a band of one standard deviation, and the ranking.

    Args:
        runs: the result of `shares_of` for each run.
        title: title of the whole figure.
    """
    grouped = pd.concat(runs).groupby(["stage", "choice", "step"], sort=False)["share"]
    table = grouped.agg(mean="mean", deviation="std", count="count").reset_index()
    table = table[2 * table["count"] > len(runs)].fillna({"deviation": 0.0})
    picture = figure(11, 6.4)
    picture.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    grid = axes_of(picture, 2, 3)
    for axes, (stage, words) in zip(grid, _TITLES.items(), strict=False):
        _draw_stage(axes, table[table["stage"] == stage], words)
    _draw_ranking(grid[-1], table[table["stage"] == JOINT])
    return picture


def _draw_stage(axes: Axes, table: pd.DataFrame, words: str) -> None:
    choices = list(dict.fromkeys(table["choice"]))
    for index, choice in enumerate(choices):
        own = table[table["choice"] == choice].sort_values("step")
        colour = COLOURS[index % len(COLOURS)]
        steps, mean = own["step"].to_numpy(dtype=float), own["mean"].to_numpy(dtype=float)
        spread = own["deviation"].to_numpy(dtype=float)
        axes.plot(steps, mean, color=colour, linewidth=2, label=_shown(choice))
        axes.fill_between(steps, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
    axes.axhline(1 / max(1, len(choices)), color="0.6", linewidth=1, linestyle=":", zorder=0)
    lowest, highest = axes.get_ylim()
    # wide enough that noise does not look like a trend
    centre, half = (lowest + highest) / 2, max((highest - lowest) / 2, 0.06)
    axes.set_ylim(max(0.0, centre - half), centre + half)
    axes.set_title(words, loc="left", fontsize=10)
    axes.set_xlabel("optimiser step")
    axes.set_ylabel("share (dotted: equal)")
    axes.legend(frameon=False, fontsize=8)


def _shown(choice: object) -> str:
    return plain(str(choice).replace("_", " "), 100)


def _draw_ranking(axes: Axes, table: pd.DataFrame) -> None:
    last = table[table["step"] == table["step"].max()].sort_values("mean")[-_SHOWN:]
    names = [_shown(choice).replace(SEPARATOR, " · ") for choice in last["choice"]]
    axes.barh(names, last["mean"], xerr=last["deviation"], color=COLOURS[0], height=0.7)
    axes.axvline(1 / table["choice"].nunique(), color="0.6", linewidth=1, linestyle=":")
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title(f"objectives, the {len(last)} first", loc="left", fontsize=10)
    axes.set_xlabel("share of the auxiliaries' weight")


def draw_factor_weights(log: Path, stage: str, title: str, target: Path) -> None:
    """Draw the factors of a run's `log` (see `factor_log`) as a PNG at `target`.

    Args:
        log: the factor log.
        stage: the stage to draw.
        title: title of the whole figure.
        target: the PNG.
    """
    table = pd.read_csv(log)
    table = table[table["stage"] == stage].drop_duplicates(["step", "factor"], keep="last")
    factor_weights_figure([shares_of(table)], title).savefig(target, dpi=150)
