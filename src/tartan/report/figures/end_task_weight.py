"""Draws the end task's weight with a separate and with the shared meta head, as figure 3."""

from __future__ import annotations

from collections import defaultdict

from matplotlib.figure import Figure

from tartan.core.task_names import END_TASK
from tartan.figures.style import axes_of, figure, legend_below, plain, style, title
from tartan.figures.task_weights import draw_weight
from tartan.report.figures.weights import weights_of
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.naming import auxiliaries_label

_KIND = ".meta_head.kind"
_WORDS = {"separate": "separate meta head (equation 7)", "shared": "shared head (equation 6)"}


def head_kind(setting: Setting) -> str | None:
    """Return `separate` or `shared`; None for a method without a meta head, or without a config."""
    stages = {stage.name for stage in setting.result.stages}
    for name, value in setting.runs[0].options.items():
        if name.endswith(_KIND) and stages & set(name.split(".")) and value in _WORDS:
            return str(value)
    return None


def draw_end_task_weight(bench: Benchmark, remarks: list[str]) -> Figure | None:
    """Draw a line for each setting, with a band of one standard deviation.

    Settings without a counterpart with the other kind of head are left out.

    Args:
        bench: the benchmark.
        remarks: gets a line for each run whose weights cannot be read.

    Returns:
        None unless both kinds were run with the same auxiliary tasks.
    """
    by_kind: dict[str, dict[str, list[Setting]]] = {kind: defaultdict(list) for kind in _WORDS}
    for setting in bench.settings:
        kind = head_kind(setting)
        if kind is not None:
            by_kind[kind][auxiliaries_label(setting.result, setting.corpora)].append(setting)
    shared_by_both = [label for label in by_kind["separate"] if label in by_kind["shared"]]
    picture = figure(7.2, 4.2)
    (axes,) = axes_of(picture)
    drawn = 0
    for kind, words in _WORDS.items():
        for auxiliaries in shared_by_both:
            for setting in by_kind[kind][auxiliaries]:
                weights = weights_of(setting, remarks)
                if weights is not None and END_TASK in set(weights["task"]):
                    label = plain(f"{words}: {setting.short}", 100)
                    draw_weight(axes, weights, END_TASK, style(drawn), label)
                    drawn += 1
    if not drawn:
        return None
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.set_xlabel("optimiser step")
    axes.set_ylabel("weight α of the end task:\nmean, band: one standard deviation")
    title(axes, bench.label)
    legend_below(picture, columns=1)
    return picture
