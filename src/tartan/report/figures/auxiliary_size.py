"""Draws the metric against the amount of domain text, as the paper's figure 2."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tartan.core.task_names import parts_of
from tartan.figures.style import Style, axes_of, figure, legend_below, plain, style, title
from tartan.report.figures.end_task_weight import head_kind
from tartan.report.labels import NAMED_BY_AUXILIARIES, PART_LABELS, method_label, weighting_label
from tartan.report.reading.apart import shortened
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.run_folder.result import Part


@dataclass(frozen=True)
class SizedPoint:
    """A setting's metric at an amount of domain text, in multiples of the training examples."""

    size: float
    mean: float
    deviation: float


def lines_of(bench: Benchmark, part: Part) -> dict[str, list[SizedPoint]]:
    """Return each method's settings on a corpus by amount of domain text, which is 0 without any.

    Of several settings of a method with the same amount, the one with most seeds is taken, then the
    best on dev.
    """
    families: dict[str, dict[float, list[Setting]]] = defaultdict(lambda: defaultdict(list))
    for setting in bench.settings:
        if setting.scores(part):
            families[_family(setting)][_size(setting)].append(setting)
    lines = {}
    for name, by_size in families.items():
        chosen = {
            size: max(settings, key=lambda s: (len(s.runs), s.dev_mean))
            for size, settings in sorted(by_size.items())
        }
        lines[name] = [_point(size, setting, part) for size, setting in chosen.items()]
    return lines


def draw_auxiliary_size(bench: Benchmark, part: Part) -> Figure | None:
    """Draw a line for each method and corpus, with a band of one standard deviation.

    Methods without domain text are horizontal lines.

    Returns:
        None unless some method has two amounts of domain text.
    """
    lines = lines_of(bench, part)
    if not any(len([p for p in points if p.size]) > 1 for points in lines.values()):
        return None
    picture = figure(7.2, 4.4)
    (axes,) = axes_of(picture)
    axes.set_xscale("log")
    what = "domain text" if bench.runs[0].result.is_text else "auxiliary images"
    names = shortened(list(lines), 60)
    for index, (name, points) in enumerate(zip(names, lines.values(), strict=True)):
        _draw_line(axes, plain(name), points, style(index), what)
    sizes = sorted({p.size for points in lines.values() for p in points if p.size})
    axes.set_xticks(sizes)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}x"))
    axes.set_xlabel(f"{what}, in multiples of the labelled training examples (log scale)")
    axes.set_ylabel(
        f"{bench.metric_label}, {PART_LABELS[part]} (%):\nmean, band: one standard deviation"
    )
    title(axes, bench.label)
    legend_below(picture)
    return picture


def _draw_line(axes: Axes, name: str, points: list[SizedPoint], style: Style, what: str) -> None:
    sized = [point for point in points if point.size]
    for point in points:
        if not point.size:
            axes.axhline(
                100 * point.mean, color=style.colour, linestyle=style.line, linewidth=1.4,
                label=f"{name} (no {what})",
            )  # fmt: skip
    if not sized:
        return
    sizes = [point.size for point in sized]
    axes.plot(
        sizes, [100 * p.mean for p in sized], color=style.colour, marker=style.marker,
        linestyle=style.line, linewidth=2, label=name,
    )  # fmt: skip
    axes.fill_between(
        sizes,
        [100 * (p.mean - p.deviation) for p in sized],
        [100 * (p.mean + p.deviation) for p in sized],
        color=style.colour, alpha=0.15, linewidth=0,
    )  # fmt: skip


def _family(setting: Setting) -> str:
    result = setting.result
    other = f" ({setting.variant})" if setting.variant else ""
    other += weighting_label(result.method, result.weighting)
    other += " (shared head)" if head_kind(setting) == "shared" else ""
    named = result.method in NAMED_BY_AUXILIARIES
    names = " + ".join(name.upper() for name in result.auxiliaries)
    corpora = ", ".join(dict.fromkeys(setting.corpora.values()))
    other += f", {names}" if names and not named else ""
    return f"{method_label(result.method)}{other}{f' ({corpora})' if corpora else ''}"


def _size(setting: Setting) -> float:
    """Return the amount of domain text; objectives that are composed on one text share it."""
    result = setting.result
    texts = {
        (parts_of(name) or (name,))[0]: one.examples
        for name, one in result.auxiliaries.items()
        if one.kind == "domain"
    }
    return sum(texts.values()) / max(1, result.train.examples)


def _point(size: float, setting: Setting, part: Part) -> SizedPoint:
    values = list(setting.scores(part).values())
    deviation = stdev(values) if len(values) > 1 else 0.0
    return SizedPoint(size, fmean(values), deviation)
