"""Draws how ways of training learn, over their cost, from a run folder of each.

`python -m docs.builder.mechanism FINETUNE TAPT MT_TARTAN ANNEALED` collects curves into
`docs/results/mechanism.csv` and draws them; without folders it draws the stored ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from tartan.core.task_names import END_TASK
from tartan.figures import figure, legend_below, save, style
from tartan.report.runs import read_run, read_steps

CURVES = Path(__file__).parents[1] / "results" / "mechanism.csv"
WAYS = ("fine-tuning", "TAPT, then fine-tuning", "together, equal weights", "together, annealed")
PANELS = ("loss on labelled texts", "loss of masked words", "macro-F1 on dev (%)")
POINTS = 40
"""Number of points of a loss's curve, means over as many equal parts of the run."""


def curves_of(way: str, folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the curves of a run: columns way, panel, tflop and value."""
    stages, before = read_run(folder, folder.name).result.stages, 0.0
    log = read_steps(folder, ["loss"]).dropna(subset="loss")
    whole = sum(sum((stage.cost.flops or {}).values()) for stage in stages) / 1e12
    for stage in stages:
        cost = sum((stage.cost.flops or {}).values()) / 1e12 / stage.steps
        own = log[log.stage == stage.name].assign(tflop=lambda f, a=before, c=cost: a + c * f.step)
        own["panel"] = (own.task == END_TASK).map({True: PANELS[0], False: PANELS[1]})
        means = own.groupby(["panel", own.tflop // (whole / POINTS)])[["tflop", "loss"]].mean()
        yield means.rename(columns={"loss": "value"}).reset_index("panel").assign(way=way)
        scores = pd.DataFrame(stage.evaluations, columns=["step", "value"])
        scores["tflop"], scores["value"] = before + cost * scores.step, 100 * scores.value
        yield scores.drop(columns="step").assign(panel=PANELS[2], way=way)
        before += cost * stage.steps


def main(folders: list[str]) -> None:
    """Collect the curves of the run folders, if there are any, and draw the stored ones."""
    if folders:
        runs = zip(WAYS, folders, strict=True)
        frame = pd.concat([one for way, folder in runs for one in curves_of(way, Path(folder))])
        frame = frame[["way", "panel", "tflop", "value"]]
        frame.to_csv(CURVES, index=False, float_format="%.4g")
    frame = pd.read_csv(CURVES)
    picture, panels = figure(10, 3.4, columns=len(PANELS))
    for axes, panel in zip(panels, PANELS, strict=True):
        for index, way in enumerate(WAYS):
            own = frame[(frame.way == way) & (frame.panel == panel)].sort_values("tflop")
            axes.plot(own.tflop, own.value, label=way, markersize=3, **style(index))
        axes.set_title(panel, loc="left", fontsize=9)
        axes.set_xlabel("TFLOP of training")
    panels[0].set_yscale("log")
    legend_below(picture, columns=4)
    save(picture, CURVES.with_suffix(".svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
