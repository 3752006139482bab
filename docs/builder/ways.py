"""Draws the three ways of training, for README: `python -m docs.builder.ways`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tartan.figures import COLOURS, save

PICTURE = Path(__file__).parents[1] / "images" / "ways.svg"
LABELLED, UNLABELLED = COLOURS[4], COLOURS[5]
STEPS = 12
"""Number of steps that are drawn of training together."""
WAYS = {
    "Fine-tuning": "labelled texts only",
    "Pre-training first": "TAPT: the task's own texts\nDAPT: other texts of its domain",
    "Training together": "MT-TARTAN: fixed weights\nMETA-TARTAN: learned weights",
}
OBJECTIVES = {
    LABELLED: "classify labelled texts",
    UNLABELLED: "predict masked words of unlabelled texts",
}


def draw() -> Figure:
    """Return the figure: a row for each way, time from left to right."""
    picture = Figure(figsize=(8, 2.6), layout="constrained")
    axes = picture.subplots()
    for row, (name, words) in enumerate(WAYS.items()):
        axes.text(-0.3, -row - 0.12, name, ha="right", va="bottom", fontsize=10, weight="bold")
        axes.text(-0.3, -row - 0.16, words, ha="right", va="top", fontsize=7.5, color="0.3")
    half, steps = STEPS / 2, [(step, 0.94) for step in range(STEPS)]
    axes.broken_barh([(0, STEPS - 0.06)], (-0.3, 0.6), color=LABELLED)
    axes.broken_barh([(0, half - 0.06)], (-1.3, 0.6), color=UNLABELLED)
    axes.broken_barh([(half, half - 0.06)], (-1.3, 0.6), color=LABELLED)
    axes.broken_barh(steps, (-1.98, 0.28), color=UNLABELLED)
    axes.broken_barh(steps, (-2.3, 0.28), color=LABELLED)
    arrow = {"arrowstyle": "->"}
    axes.annotate("training", (STEPS, -2.75), (0, -2.75), va="center", arrowprops=arrow)
    patches = [Patch(color=colour, label=text) for colour, text in OBJECTIVES.items()]
    place = {"loc": "lower center", "bbox_to_anchor": (0.4, 1)}
    axes.legend(handles=patches, ncols=2, frameon=False, **place)
    axes.set(xlim=(-5, STEPS + 0.1), ylim=(-3, 0.5))
    axes.axis("off")
    return picture


if __name__ == "__main__":
    save(draw(), PICTURE)
