"""Draws the figures of a report: the paper's 2, 3 and 4, test scores, cost and reliability."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from tartan.core.task_names import parts_of
from tartan.errors import UserError
from tartan.evaluation.calibration import Calibration, Reliability
from tartan.figures import (
    draw_mean,
    draw_task_lines,
    figure,
    figure_text,
    legend_below,
    mean_over_runs,
    style,
)
from tartan.files import CALIBRATION, read_json
from tartan.report.comparison import PART_LABELS, Benchmark, Setting
from tartan.report.runs import read_steps
from tartan.report.tables import plural
from tartan.runs.identity import variant_of
from tartan.runs.result import Part, Result

_HEADS = {"separate": "separate meta head (equation 7)", "shared": "shared head (equation 6)"}
_SPENT = {
    "steps": "optimiser steps of all stages, so far",
    "flops": "FLOPs of training passes, so far",
}


@dataclass(frozen=True)
class Picture:
    """A figure of a benchmark, by its key; its kind is e.g. `seeds-whole`."""

    bench: str
    kind: str
    caption: str
    figure: Figure

    @property
    def name(self) -> str:
        return f"{self.bench}.{self.kind}"


def pictures_of(benches: Sequence[Benchmark], remarks: list[str]) -> list[Picture]:
    """Return every figure for which the runs have the numbers; damaged logs go to `remarks`."""
    return [
        Picture(bench.key, kind, caption, drawn)
        for bench in benches
        for kind, caption, drawn in _of_bench(bench, remarks)
        if drawn is not None
    ]


def _of_bench(bench: Benchmark, remarks: list[str]) -> Iterator[tuple[str, str, Figure | None]]:
    for part in bench.parts:
        yield f"seeds-{part}", "Every run and the means", draw_seeds(bench, part)
        caption = "The metric by amount of domain text (the paper's figure 2)"
        yield f"size-{part}", caption, draw_auxiliary_size(bench, part)
    caption = "Task weights that META-TARTAN learned (the paper's figures 3 and 4)"
    yield "task-weights", caption, draw_learned_weights(bench, remarks)
    yield "cost", "Dev at equal cost: a vertical line meets what each had reached", draw_cost(bench)
    caption = "Reliability on dev: the share of right texts by score, over all seeds"
    yield "reliability", caption, draw_reliability(bench, remarks)


def draw_seeds(bench: Benchmark, part: Part) -> Figure | None:
    """Draw every run's test metric, a row for each setting, best mean on top; None without any."""
    scored = [(i, setting) for i, setting in enumerate(bench.settings) if setting.scores(part)]
    if not scored:
        return None
    scored.sort(key=lambda pair: pair[1].mean(part))
    picture, (axes,) = figure(7.2, 1.2 + 0.42 * len(scored), bench.label)
    labels = []
    for place, (index, setting) in enumerate(scored):
        values = [100 * value for value in setting.scores(part).values()]
        mean, colour = fmean(values), style(index)["color"]
        # apart where values are close, in a fixed order
        heights = [place + 0.09 * ((number % 3) - 1) for number in range(len(values))]
        axes.plot(values, heights, **style(index) | {"linestyle": ""}, markerfacecolor="white")
        axes.plot([mean, mean], [place - 0.28, place + 0.28], color=colour, linewidth=3)
        axes.annotate(f"{mean:.1f}", (mean, place + 0.3), ha="center", fontsize=8)
        labels.append(f"{figure_text(setting.label)} ({plural(len(values), 'seed')})")
    axes.set_yticks(range(len(scored)), labels)
    axes.set_ylim(-0.6, len(scored) - 0.2)
    where = f"{bench.metric_label} on the {PART_LABELS[part]} (%)"
    axes.set_xlabel(f"{where}; bar: mean, point: a seed")
    return picture


def draw_cost(bench: Benchmark) -> Figure:
    """Draw each setting's metric on dev against the FLOPs so far, or steps where one has none."""
    unit = "steps" if any(run.result.flops is None for run in bench.runs) else "flops"
    picture, (axes,) = figure(7.2, 4.2, bench.label)
    for index, setting in enumerate(bench.settings):
        curves = [evaluations(run.result, unit) for run in setting.runs]
        means = mean_over_runs(curves, [], "score")
        draw_mean(axes, means, style(index), figure_text(setting.label))
    axes.set_xlabel(_SPENT[unit])
    axes.set_xlim(left=0)
    axes.set_ylabel(f"dev {bench.metric_label} (%)")
    legend_below(picture)
    return picture


def evaluations(result: Result, unit: str) -> pd.DataFrame:
    """Return the evaluations on dev: their number (step), cost so far (x), and score in percent."""
    rows: list[tuple[float, ...]] = []
    before = 0.0
    for stage in result.stages:
        amount = getattr(stage, unit)
        for step, score in stage.evaluations:
            rows.append((len(rows), before + amount * step / max(1, stage.steps), 100 * score))
        before += amount  # of earlier stages; within one, it grows evenly with the steps
    return pd.DataFrame(rows, columns=["step", "x", "score"], dtype=float)


def lines_by_size(bench: Benchmark, part: Part) -> dict[str, dict[float, Setting]]:
    """Return each method's settings on a corpus by amount of domain text, in multiples of train."""
    lines: dict[str, dict[float, Setting]] = defaultdict(dict)
    scored = [setting for setting in bench.settings if setting.scores(part)]
    for setting in sorted(scored, key=_evidence):
        result = setting.result
        domain = {task: one for task, one in result.auxiliaries.items() if one.kind == "domain"}
        texts = {(parts_of(task) or (task,))[0]: one.examples for task, one in domain.items()}
        name = re.sub(r" (all|[\d.e+]+x)\b", "", result.label)  # without the amounts
        name += " (shared head)" if head_kind(setting) == "shared" else ""
        lines[name][sum(texts.values()) / max(1, result.train.examples)] = setting
    return {name: dict(sorted(lines[name].items())) for name in sorted(lines)}


def _evidence(setting: Setting) -> tuple[int, float]:
    return len(setting.runs), setting.dev_mean


def draw_auxiliary_size(bench: Benchmark, part: Part) -> Figure | None:
    """Draw the metric against the amount of domain text: a line for each method and corpus."""
    lines = lines_by_size(bench, part)
    if not any(len(line.keys() - {0.0}) > 1 for line in lines.values()):
        return None
    picture, (axes,) = figure(7.2, 4.4, bench.label)
    axes.set_xscale("log")
    what = "domain text" if bench.result.is_text else "auxiliary images"
    for index, (name, line) in enumerate(lines.items()):
        scores = {size: pd.Series(setting.scores(part)) for size, setting in line.items()}
        if 0 in scores:
            label, colour = f"{figure_text(name)} (no {what})", style(index)["color"]
            axes.axhline(100 * scores.pop(0).mean(), color=colour, label=label)
        if scores:
            means = 100 * pd.DataFrame(scores).agg(["mean", "std"]).T.fillna(0.0)
            means = means.rename_axis("x").reset_index().rename(columns={"std": "deviation"})
            draw_mean(axes, means, style(index), figure_text(name))
    axes.set_xticks(sorted({size for line in lines.values() for size in line if size}))
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}x"))
    axes.set_xlabel(f"{what}, in multiples of the labelled training examples (log scale)")
    axes.set_ylabel(f"{bench.metric_label}, {PART_LABELS[part]} (%):\nmean and deviation")
    legend_below(picture)
    return picture


def head_kind(setting: Setting) -> str | None:
    """Return `separate` or `shared`; None for a method without a meta head, or without a config."""
    kinds = [v for name, v in setting.options.items() if name.endswith(".meta_head.kind")]
    return kinds[0] if kinds and kinds[0] in _HEADS else None


def draw_learned_weights(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw the weights that META-TARTAN learned, with each kind of meta head; None without.

    Of several settings, that with most seeds is drawn, then the best on dev.
    """
    learned = [
        setting
        for setting in bench.settings
        if (setting.result.method, setting.result.weighting) == ("meta_tartan", "meta")
        and not variant_of(setting.result, setting.options)
    ]
    panels = {}
    for kind, words in _HEADS.items():
        fitting = [one for one in learned if (head_kind(one) or "separate") == kind]
        best = max(fitting, key=_evidence, default=None)
        weights = best and weights_of(best, remarks)
        if best is not None and weights is not None:
            panels[f"{figure_text(best.label)}\n{words}"] = weights
    if not panels:
        return None
    size = (0.6 + 6.6 * len(panels), 4.6)
    picture, all_axes = figure(*size, bench.label, columns=len(panels), sharey=True)
    for axes, (title, weights) in zip(all_axes, panels.items(), strict=True):
        draw_task_lines(axes, weights)
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("optimiser step")
        axes.legend(frameon=False, fontsize=8)
    all_axes[0].set_ylabel("task weight α (dotted: equal)")
    return picture


def weights_of(setting: Setting, remarks: list[str]) -> pd.DataFrame | None:
    """Return mean weights by task and step, of the last stage that weighted tasks; None if none."""
    tables = []
    for run in setting.runs:
        mixed = [stage.name for stage in run.result.stages if stage.final_task_weights]
        try:
            table = read_steps(run.folder) if mixed else pd.DataFrame()
        except UserError as error:
            remarks.append(f"{run.name}: no task weights drawn ({error})")
            continue
        if len(table):
            tables.append(table[(table["stage"] == mixed[-1]) & table["weight"].notna()])
    whole = any(len(table) for table in tables)
    return mean_over_runs(tables, ["task"], "weight") if whole else None


def draw_reliability(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw accuracy by score, before and after the temperature, of all seeds; None without any."""
    fitted = {setting: calibrations_of(setting, remarks) for setting in bench.settings}
    if not any(fitted.values()):
        return None
    picture, panels = figure(7.2, 4.4, bench.label, columns=2, sharey=True)
    for index, (setting, runs) in enumerate(fitted.items()):
        sides = [run.before for run in runs], [run.after for run in runs]
        # in words the mean over seeds of the expected calibration error
        errors = " to ".join(f"{100 * fmean(r.ece for r in side):.1f}" for side in sides if side)
        label = f"{figure_text(setting.label)}: error {errors} %"
        for axes, side in zip(panels, sides, strict=True):
            if side:
                axes.plot(*pooled(side), label=label, markersize=4, **style(index))
    for axes, title in zip(panels, ("softmax of the logits", "with the temperature"), strict=True):
        axes.plot([0, 100], [0, 100], color="0.6", linewidth=1, linestyle=":", zorder=0)
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel("highest score (%)")
    panels[0].set_ylabel("right texts (%; dotted: as the score says)")
    legend_below(picture, columns=1)
    return picture


def calibrations_of(setting: Setting, remarks: list[str]) -> list[Calibration]:
    """Return what the runs of a setting have stored; a damaged file goes to `remarks`."""
    stored = []
    for run in setting.runs:
        try:
            if (run.folder / CALIBRATION).is_file():
                stored.append(read_json(run.folder / CALIBRATION, Calibration))
        except UserError as error:
            remarks.append(f"{run.name}: no reliability drawn ({error})")
    return stored


def pooled(runs: Sequence[Reliability]) -> NDArray[np.float64]:
    """Return confidence and accuracy of all runs' texts in percent, `(2, bins with texts)`."""
    counts = np.array([run.examples for run in runs])
    shares = np.array([[run.confidence for run in runs], [run.accuracy for run in runs]])
    total = counts.sum(axis=0)
    sums = 100 * (counts * shares).sum(axis=1)
    points: NDArray[np.float64] = sums[:, total > 0] / total[total > 0]
    return points
