"""Draws the confusion matrix of the best run on test, and the F1 of each class."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tartan.evaluation.statistics import scores_by_class
from tartan.figures.style import COLOURS, axes_of, figure, plain
from tartan.report.reading.grouping import Benchmark, Setting
from tartan.report.reading.run import Run

_MOST = 40
"""Number of classes above which the matrix is not drawn."""


def best_run(bench: Benchmark) -> tuple[Setting, Run] | None:
    """Return the run that did best on dev, of those with a confusion matrix; None without any."""
    kept = [
        (setting, run)
        for setting in bench.settings
        for run in setting.runs
        if run.result.test.whole.confusion is not None
    ]
    return max(kept, key=lambda best: best[1].result.dev_score, default=None)


def draw_confusion(bench: Benchmark) -> Figure | None:
    """Draw the best run's matrix; return None if no run has one, or there are too many classes."""
    best = best_run(bench)
    if best is None or len(best[1].result.labels) > _MOST:
        return None
    setting, result = best[0], best[1].result
    labels = [plain(label, 18) for label in result.labels]
    counts = np.array(result.test.whole.confusion, dtype=np.int64)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    side = max(3.0, 0.5 * len(labels) + 1.6)
    picture = figure(side + 3.6, side)
    left, right = axes_of(picture, 1, 2, width_ratios=[side, 3.2])
    left.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    small = 8 if len(labels) <= 12 else 6
    for row, column in np.ndindex(*counts.shape):
        if counts[row, column]:
            dark = shares[row, column] > 0.55
            left.text(
                column, row, f"{counts[row, column]}", ha="center", va="center", fontsize=small,
                color="white" if dark else "0.15",
            )  # fmt: skip
    places = range(len(labels))
    left.set_xticks(places, labels)
    if max(map(len, labels)) > 3:
        left.tick_params("x", rotation=40)
        for tick in left.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    left.set_yticks(places, labels)
    left.grid(visible=False)
    left.set_xlabel("predicted")
    left.set_ylabel("label (colour: share of its examples)")
    scores = [100 * (one.f1 or 0.0) for one in scores_by_class(counts.tolist())]
    right.barh(places, scores, color=COLOURS[0], height=0.7)
    for place, score in enumerate(scores):
        right.text(score + 1, place, f"{score:.0f}", va="center", fontsize=small)
    right.set_yticks(places, labels)
    right.invert_yaxis()
    right.set_xlim(0, 109)
    right.grid(visible=False, axis="y")
    right.set_xlabel("F1 (%)")
    picture.suptitle(
        plain(f"{setting.label}, seed {result.seed}: best on dev of {bench.label}", 100),
        x=0.01, ha="left", fontweight="bold", fontsize=10,
    )  # fmt: skip
    return picture
