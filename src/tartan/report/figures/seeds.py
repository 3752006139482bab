"""Draws the test metric of every run as a point, with the mean of each setting."""

from __future__ import annotations

from statistics import fmean

from matplotlib.figure import Figure

from tartan.figures.style import axes_of, figure, plain, styles_of, title
from tartan.report.labels import PART_LABELS, plural
from tartan.report.reading.grouping import Benchmark
from tartan.run_folder.result import Part


def draw_seeds(bench: Benchmark, part: Part) -> Figure | None:
    """Draw a row for each setting, best mean on top; return None without scores."""
    scored = [setting for setting in bench.settings if setting.scores(part)]
    if not scored:
        return None
    styles = styles_of([setting.key for setting in bench.settings])
    scored.sort(key=lambda setting: fmean(setting.scores(part).values()))
    picture = figure(7.2, 1.2 + 0.42 * len(scored))
    (axes,) = axes_of(picture)
    for place, setting in enumerate(scored):
        values = [100 * value for value in setting.scores(part).values()]
        style = styles[setting.key]
        # apart where values are close, in a fixed order
        offsets = [0.09 * ((index % 3) - 1) for index in range(len(values))]
        axes.plot(
            values, [place + offset for offset in offsets], linestyle="", marker=style.marker,
            markersize=6, color=style.colour, markerfacecolor="white", markeredgewidth=1.4,
        )  # fmt: skip
        mean = fmean(values)
        axes.plot([mean, mean], [place - 0.28, place + 0.28], color=style.colour, linewidth=3)
        axes.annotate(
            f"{mean:.1f}", (mean, place + 0.3), ha="center", va="bottom", fontsize=8,
            color="0.2",
        )  # fmt: skip
    labels = [plain(f"{s.short} ({plural(len(s.scores(part)), 'seed')})", 80) for s in scored]
    axes.set_yticks(range(len(scored)), labels)
    axes.set_ylim(-0.6, len(scored) - 0.2)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        f"{bench.metric_label} on the {PART_LABELS[part]} (%); bar: mean, point: a seed"
    )
    title(axes, bench.label)
    return picture
