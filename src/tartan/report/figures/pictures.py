"""Lists all static figures of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from tartan.report.figures.auxiliary_size import draw_auxiliary_size
from tartan.report.figures.confusion import draw_confusion
from tartan.report.figures.cost import draw_cost
from tartan.report.figures.end_task_weight import draw_end_task_weight
from tartan.report.figures.factor_weights import draw_factor_weights
from tartan.report.figures.learning_curves import draw_learning_curves
from tartan.report.figures.seeds import draw_seeds
from tartan.report.figures.weight_trajectories import draw_weight_trajectories
from tartan.report.reading.grouping import Benchmark
from tartan.run_folder.result import PARTS


@dataclass(frozen=True)
class Picture:
    """A figure with its name and caption.

    Attributes:
        name: name of its files, without ending.
        bench: key of the benchmark that it shows; empty if it shows several.
        kind: kind of figure, e.g. `seeds-whole`.
        caption: a sentence on what it shows.
        figure: the figure.
    """

    name: str
    bench: str
    kind: str
    caption: str
    figure: Figure


def pictures_of(benches: Sequence[Benchmark], remarks: list[str]) -> list[Picture]:
    """Return every figure for which the runs have the numbers.

    Args:
        benches: the benchmarks.
        remarks: gets a line for each run of which something could not be drawn.
    """
    pictures = [
        Picture(f"{bench.key}.{kind}", bench.key, kind, caption, figure)
        for bench in benches
        for kind, caption, figure in _of_bench(bench, remarks)
        if figure is not None
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
    yield "learning", "Learning curves", draw_learning_curves(bench)
    yield "cost", "What the metric costs; below, at equal cost", draw_cost(bench)
