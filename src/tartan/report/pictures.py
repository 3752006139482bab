"""Draws the figures of a report: the paper's 2, 3 and 4, factors, and those of `curves`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import stdev

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tartan.core.task_names import END_TASK, JOINT, STAGES, parts_of
from tartan.errors import UserError
from tartan.figures.style import axes_of, figure, figure_text, legend_below, style
from tartan.figures.weights import (
    TWO_WAY,
    draw_mean,
    factor_weights_figure,
    mean_weights,
    shares_of,
    tasks_of,
)
from tartan.report.curves import draw_confusion, draw_cost, draw_seeds
from tartan.report.runs import Run, read_log, read_steps
from tartan.report.settings import PART_LABELS, Benchmark, Setting, shortened
from tartan.runs.result import PARTS, Part

_HEADS = {"separate": "separate meta head (equation 7)", "shared": "shared head (equation 6)"}


@dataclass(frozen=True)
class Picture:
    """A figure: of a benchmark, by its key, or of several; its kind is e.g. `seeds-whole`."""

    name: str
    bench: str
    kind: str
    caption: str
    figure: Figure


def pictures_of(benches: Sequence[Benchmark], remarks: list[str]) -> list[Picture]:
    """Return every figure for which the runs have the numbers; the rest goes to `remarks`."""
    pictures = [
        Picture(f"{bench.key}.{kind}", bench.key, kind, caption, drawn)
        for bench in benches
        for kind, caption, drawn in _of_bench(bench, remarks)
        if drawn is not None
    ]
    trajectories = draw_weight_trajectories(benches, remarks)
    if trajectories is not None:
        caption = "Task weights that META-TARTAN learned (the paper's figure 4)"
        pictures.append(Picture("task-weights", "", "task-weights", caption, trajectories))
    return pictures


def _of_bench(bench: Benchmark, remarks: list[str]) -> Iterator[tuple[str, str, Figure | None]]:
    for part in PARTS:
        if part == "whole" or bench.has_two_parts:
            yield f"seeds-{part}", "Every run and the means", draw_seeds(bench, part)
            caption = "The metric by amount of domain text (the paper's figure 2)"
            yield f"size-{part}", caption, draw_auxiliary_size(bench, part)
    caption = "The end task's weight by kind of meta head (the paper's figure 3)"
    yield "end-task-weight", caption, draw_end_task_weight(bench, remarks)
    caption = "Which factors of composed objectives carry the weight (AANG)"
    yield "factor-weights", caption, draw_factor_weights(bench, remarks)
    yield "confusion", "Where the best run on dev is wrong on test", draw_confusion(bench)
    yield (
        "cost",
        "Test against the whole cost of training; below, dev against the cost so far",
        draw_cost(bench),
    )


def lines_by_size(bench: Benchmark, part: Part) -> dict[str, dict[float, Setting]]:
    """Return each method's settings on a corpus by amount of domain text, in multiples of train.

    The amount is 0 without any, and objectives that are composed on one text share it. Of several
    settings of a method with the same amount, the one with most seeds is taken, then the best on
    dev.
    """
    lines: dict[str, dict[float, Setting]] = defaultdict(dict)
    for setting in sorted(bench.settings, key=lambda s: (len(s.runs), s.dev_mean)):
        result = setting.result
        texts = {
            (parts_of(name) or (name,))[0]: one.examples
            for name, one in result.auxiliaries.items()
            if one.kind == "domain"
        }
        size = sum(texts.values()) / max(1, result.train.examples)
        name = result.label
        for one in result.auxiliaries.values():
            amount = one.size if isinstance(one.size, str) else f"{one.size:g}x"
            name = name.replace(f" {amount}", "")
        name += " (shared head)" if head_kind(setting) == "shared" else ""
        if setting.scores(part):
            lines[name][size] = setting
    return {name: dict(sorted(lines[name].items())) for name in sorted(lines)}


def draw_auxiliary_size(bench: Benchmark, part: Part) -> Figure | None:
    """Draw the metric against the amount of domain text: a line for each method and corpus.

    Bands are one standard deviation; methods without domain text are horizontal lines. None unless
    some method has two amounts of domain text.
    """
    lines = lines_by_size(bench, part)
    if not any(len(line.keys() - {0.0}) > 1 for line in lines.values()):
        return None
    picture = figure(7.2, 4.4, bench.label)
    (axes,) = axes_of(picture)
    axes.set_xscale("log")
    what = "domain text" if bench.result.is_text else "auxiliary images"
    names = shortened(list(lines), 60)
    for index, (name, line) in enumerate(zip(names, lines.values(), strict=True)):
        drawn = style(index)
        means = {size: 100 * setting.mean(part) for size, setting in line.items()}
        if 0 in means:
            label = f"{figure_text(name)} (no {what})"
            axes.axhline(means.pop(0), color=drawn.colour, linestyle=drawn.line, label=label)
        if means:
            values = [list(line[size].scores(part).values()) for size in means]
            spread = [100 * stdev(own) if len(own) > 1 else 0.0 for own in values]
            frame = {"step": list(means), "mean": list(means.values()), "deviation": spread}
            draw_mean(axes, pd.DataFrame(frame), drawn, figure_text(name))
    axes.set_xticks(sorted({size for line in lines.values() for size in line if size}))
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}x"))
    axes.set_xlabel(f"{what}, in multiples of the labelled training examples (log scale)")
    axes.set_ylabel(f"{bench.metric_label}, {PART_LABELS[part]} (%):\nmean and deviation")
    legend_below(picture)
    return picture


def head_kind(setting: Setting) -> str | None:
    """Return `separate` or `shared`; None for a method without a meta head, or without a config."""
    for name, value in setting.options.items():
        if name.endswith(".meta_head.kind") and value in _HEADS:
            return str(value)
    return None


def draw_end_task_weight(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw the end task's weight with a separate and with the shared meta head.

    None unless both kinds were run; settings without a counterpart of the other kind are left out.
    """
    kinds: dict[str, list[Setting]] = defaultdict(list)
    for setting in bench.settings:
        kinds[head_kind(setting) or ""].append(setting)
    picture = figure(7.2, 4.2, bench.label)
    (axes,) = axes_of(picture)
    drawn = 0
    for kind, words in _HEADS.items():
        others = {s.result.label for other in _HEADS if other != kind for s in kinds[other]}
        for setting in kinds[kind]:
            weights = weights_of(setting, remarks) if setting.result.label in others else None
            if weights is not None and END_TASK in set(weights["task"]):
                label = figure_text(f"{words}: {setting.short}", 100)
                draw_mean(axes, weights[weights["task"] == END_TASK], style(drawn), label)
                drawn += 1
    if not drawn:
        return None
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.set_xlabel("optimiser step")
    axes.set_ylabel("weight α of the end task:\nmean, band: one standard deviation")
    legend_below(picture, columns=1)
    return picture


def draw_weight_trajectories(benches: Sequence[Benchmark], remarks: list[str]) -> Figure | None:
    """Draw how META-TARTAN's weights move, a panel for each benchmark; None without any.

    Of several settings, the one with most seeds is drawn, then the best on dev; none with a module
    of one's own, or with the shared head.
    """
    panels: list[tuple[Benchmark, Setting, pd.DataFrame]] = []
    for bench in benches:
        fitting = [
            setting
            for setting in bench.settings
            if (setting.result.method, setting.result.weighting) == ("meta_tartan", "meta")
            and not setting.variant
            and head_kind(setting) != "shared"
        ]
        setting = max(fitting, key=lambda s: (len(s.runs), s.dev_mean), default=None)
        weights = None if setting is None else weights_of(setting, remarks)
        if setting is not None and weights is not None:
            panels.append((bench, setting, weights))
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = ceil(len(panels) / columns)
    picture = figure(max(5.6, 3.9 * columns), 3.4 * rows)
    grid = axes_of(picture, rows, columns, sharey=True)
    for axes, (bench, setting, weights) in zip(grid, panels, strict=False):
        tasks = tasks_of(weights)
        for index, task in enumerate(tasks):
            draw_mean(axes, weights[weights["task"] == task], style(index), figure_text(task, 24))
        axes.axhline(1 / len(tasks), color="0.5", linewidth=1, linestyle=":")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("optimiser step")
        title = f"{figure_text(bench.label, 44)}\n{figure_text(setting.short, 44)}"
        axes.set_title(title, loc="left", fontsize=9)
        axes.legend(frameon=False, fontsize=8)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[::columns]:
        axes.set_ylabel("task weight α (dotted: equal)")
    return picture


def weights_of(setting: Setting, remarks: list[str]) -> pd.DataFrame | None:
    """Return `mean_weights` of the last stage that weighted tasks; None if there is none."""
    tables = []
    for run in setting.runs:
        mixed = [stage.name for stage in run.result.stages if stage.final_task_weights]
        try:
            table = read_steps(run.folder) if mixed else None
        except UserError as error:
            remarks.append(f"{run.name}: no task weights drawn ({error})")
            continue
        if table is not None:
            tables.append(table[(table["stage"] == mixed[-1]) & table["weight"].notna()])
    if all(table.empty for table in tables):
        return None
    return mean_weights(tables)


def draw_factor_weights(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw the factors of the setting with most seeds, then best on dev; None without any."""
    best: tuple[int, float, str, list[pd.DataFrame]] | None = None
    for setting in bench.settings:
        shares = []
        for run in setting.runs:
            try:
                shares += [_shares(run)] if (run.folder / "factors.csv").exists() else []
            except UserError as error:
                remarks.append(f"{run.name}: no factors drawn ({error})")
        if shares and (best is None or (len(shares), setting.dev_mean) > best[:2]):
            best = len(shares), setting.dev_mean, setting.label, shares
    return None if best is None else factor_weights_figure(best[3], f"{best[2]} on {bench.label}")


def _shares(run: Run) -> pd.DataFrame:
    """Return `shares_of` the last stage that learned factors.

    Raises:
        UserError: the file is damaged or of another form.
    """
    kinds = {"stage": str, "step": float, "factor": str, "logit": float}
    table = read_log(run.folder / "factors.csv", kinds)
    table = table[table["stage"] == table["stage"].iloc[-1:].max()]
    table = table.drop_duplicates(["step", "factor"], keep="last")
    complete = len(table) == table["factor"].nunique() * table["step"].nunique()
    known = {*table["factor"].str.partition("/")[0]} == {*STAGES, JOINT, TWO_WAY}
    shares = shares_of(table) if complete and known and table["logit"].notna().all() else None
    if shares is None or shares["share"].isna().any():
        raise UserError("factors.csv: its factors are not those of composed objectives")
    return shares
