"""Measures how a step's time grows with tasks, with tokens in a batch, with the body's size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from scipy import stats

from benchmarks.case import Case, build_case
from benchmarks.manual_step import ManualStep
from benchmarks.measure import time_interleaved
from benchmarks.row import Row


@dataclass(frozen=True)
class Growth(Row):
    """The time of a META-TARTAN step as a function of one size.

    Attributes:
        along: name of the size.
        sizes: its values.
        seconds: median time of a step at each value [s].
        slope: slope of the line fitted to the logarithms; 1 is proportional growth.
        slope_error: standard error of the slope.
    """

    title = "time of a META-TARTAN step"
    along: str
    sizes: list[float]
    seconds: list[float]
    slope: float
    slope_error: float


def measure_growth(
    along: str, cases: Mapping[float, Case], rounds: int, folder: Path, device: torch.device
) -> Growth:
    """Time three steps of each case, all cases in turn.

    Args:
        along: name of the size. For `tokens a batch` and `parameters of the body`, the sizes are
            counted on the built cases.
        cases: the cases by size.
        rounds: number of measurements of each.
        folder: a folder for the cases' runs.
        device: the device.
    """
    steps, sizes = {}, []
    for number, (size, case) in enumerate(cases.items()):
        built = build_case(case, 3, folder / str(number))
        batches = built.batches(device)
        by_hand = ManualStep(built, device)
        steps[str(number)] = partial(by_hand.steps, batches)
        if along == "tokens a batch":
            size = sum(b.tokens for batch in batches for b in batch.tasks.values()) / 3
        elif along == "parameters of the body":
            size = sum(p.numel() for p in by_hand.module.body.parameters())
        sizes.append(float(size))
    times = time_interleaved(steps, rounds, device)
    seconds = [median(values) / 3 for values in times.values()]
    line = stats.linregress(np.log(sizes), np.log(seconds))
    return Growth(along, sizes, seconds, float(line.slope), float(line.stderr))
