"""Growth of a step's time: with tasks, with tokens in a batch, with the size of the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")

import numpy as np
import torch
from matplotlib import pyplot
from scipy import stats

from src.bench.by_hand import OurStep
from src.bench.case import Case, built_case
from src.bench.measure import interleaved
from src.figures.style import COLOURS


@dataclass(frozen=True)
class Growth:
    """Seconds of a META-TARTAN step over a size, and the slope on logarithmic axes.

    Attributes:
        along: what grows.
        sizes: the horizontal axis.
        seconds: the median step's at each size.
        slope: of the line fitted to the logarithms: 1 is proportional growth.
        slope_error: its standard error.
    """

    along: str
    sizes: list[float]
    seconds: list[float]
    slope: float
    slope_error: float


def measure_growth(
    along: str, cases: Mapping[float, Case], rounds: int, folder: Path, device: torch.device
) -> Growth:
    """Time the same three steps of each case, all cases in turn.

    Args:
        cases: by size; along `tokens` and `body` the sizes are put in by what is measured.
    """
    steps, sizes = {}, []
    for number, (size, case) in enumerate(cases.items()):
        built = built_case(case, 3, folder / str(number))
        batches = built.batches(device)
        ours = OurStep(built, device)
        steps[str(number)] = ours.all_steps(batches)
        if along == "tokens a batch":
            size = sum(b.tokens for batch in batches for b in batch.tasks.values()) / 3
        elif along == "parameters of the body":
            size = sum(p.numel() for p in ours.module.body.parameters())
        sizes.append(float(size))
    times = interleaved(steps, rounds, device)
    seconds = [median(values) / 3 for values in times.values()]
    line = stats.linregress(np.log(sizes), np.log(seconds))
    return Growth(along, sizes, seconds, float(line.slope), float(line.stderr))


def draw_growth(growths: Sequence[Growth], path: Path) -> None:
    """Draw seconds a step over each size, on logarithmic axes."""
    figure, axes = pyplot.subplots(
        1, len(growths), figsize=(3.4 * len(growths), 3), sharey=True, layout="constrained"
    )
    for axis, growth in zip(axes, growths, strict=True):
        axis.loglog(growth.sizes, growth.seconds, "o-", color=COLOURS[0])
        axis.set_xlabel(growth.along)
        axis.set_title(f"slope {growth.slope:.2f} ± {growth.slope_error:.2f}", fontsize=10)
        axis.grid(visible=True, which="both", alpha=0.3)
    axes[0].set_ylabel("seconds a step")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
