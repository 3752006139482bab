"""Computes means over seeds with their intervals, and the answers to a part's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from studies.part import Contrast, Question
from studies.row import Row
from tartan.evaluation.statistics import Interval, mean_interval

LEAST_SEEDS = 3
"""Number of seeds below which nothing is decided."""
Verdict = Literal["holds", "does not hold", "not decided"]


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds: of at least one value, by seed."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        return fmean(self.values.values())

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (n - 1); None for a single seed."""
        return stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def interval(self) -> Interval | None:
        """Student's 95 % interval of the mean; None of too few seeds, and where all are equal."""
        values = list(self.values.values())
        return mean_interval(values) if len(values) >= LEAST_SEEDS else None

    def verdict(self, margin: float) -> Verdict:
        """Return whether the mean exceeds `margin`; undecided where the interval contains it."""
        interval = self.interval
        if interval is None:
            return "not decided"
        if interval.low > margin:
            return "holds"
        return "does not hold" if interval.high <= margin else "not decided"


def contrast_of(contrast: Contrast, rows: Sequence[Row], of: str) -> SeedMean | None:
    """Return the contrast over the seeds that all of its cells have; None without such a seed.

    Args:
        of: `test`, `dev` or `end_task_weight`.
    """
    cells = (*contrast.plus, *contrast.minus)
    found = {cell: by_seed(cell, rows, of) for cell in cells}
    shared = sorted(set.intersection(*(set(values) for values in found.values())))
    if not shared:
        return None
    return SeedMean(
        {
            seed: sum(found[cell][seed] for cell in contrast.plus)
            - sum(found[cell][seed] for cell in contrast.minus)
            for seed in shared
        }
    )


def answer(question: Question, rows: Sequence[Row]) -> Verdict:
    """Return whether a statement holds: all its contrasts must, and one that fails refutes it."""
    verdicts = []
    for contrast in question.contrasts.values():
        estimate = contrast_of(contrast, rows, question.of)
        verdicts.append("not decided" if estimate is None else estimate.verdict(question.margin))
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if set(verdicts) == {"holds"} else "not decided"


def has_runs(question: Question, rows: Sequence[Row]) -> bool:
    """Return whether a contrast of the question has a seed that all of its cells have."""
    found = (contrast_of(own, rows, question.of) for own in question.contrasts.values())
    return any(own is not None for own in found)


def by_seed(cell: str, rows: Sequence[Row], of: str) -> dict[int, float]:
    """Return a cell's values by seed; for `of` see `contrast_of`."""
    values = {row.seed: getattr(row, of) for row in rows if row.cell == cell}
    return {seed: float(value) for seed, value in values.items() if value is not None}
