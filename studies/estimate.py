"""Computes means over seeds with their intervals, answers to questions, and puts them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

import pandas as pd

from studies.part import Contrast, Question
from studies.row import Row
from tartan.evaluation.statistics import Interval, mean_interval, permutation_test
from tartan.files import escape_markdown
from tartan.report.paper import paper_tables
from tartan.report.tables import markdown_of, p_words

LEAST_SEEDS = 3
"""Number of seeds below which nothing is decided."""
NONE = "–"
"""Entry of a table for a value that is not known."""
Verdict = Literal["holds", "does not hold", "not decided"]
_LABELS = {"acl_arc": 1688, "scierc": 3219, "chemprot": 4169, "hyperpartisan": 516}
"""Number of training examples of the paper's tasks."""
_COLUMNS = {"finetune": "finetune", "tapt": "released", "mt_tartan": "mt", "meta_tartan": "meta"}
"""Columns of the paper's table 1 by method; its TAPT starts from the released encoder."""


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds: of at least one value, by seed."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        return fmean(self.values.values())

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

    @property
    def words(self) -> str:
        """The mean in percent, with its standard deviation from two seeds on."""
        values = self.values.values()
        spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
        return f"{100 * self.mean:.1f}{spread}"

    @property
    def p(self) -> str:
        """The one-sided p of a difference; a dash where too few seeds give one.

        The signs of the differences are exchanged, as the two values of each pair would be.
        """
        values = list(self.values.values())
        if len(values) < LEAST_SEEDS:
            return NONE
        return p_words(permutation_test(values, [0.0] * len(values), paired=True).one_sided)


def contrast_of(contrast: Contrast, rows: Sequence[Row], of: str) -> SeedMean | None:
    """Return the contrast over the seeds that all of its cells have; None without such a seed.

    It is of `test`, `dev` or `end_task_weight`.
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


def by_seed(cell: str, rows: Sequence[Row], of: str) -> dict[int, float]:
    """Return a cell's values by seed."""
    values = {row.seed: getattr(row, of) for row in rows if row.cell == cell}
    return {seed: float(value) for seed, value in values.items() if value is not None}


def answer(question: Question, rows: Sequence[Row]) -> Verdict:
    """Return whether a statement holds: all its contrasts must, and one that fails refutes it."""
    found = [contrast_of(one, rows, question.of) for one in question.contrasts.values()]
    verdicts = {"not decided" if one is None else one.verdict(question.margin) for one in found}
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts == {"holds"} else "not decided"


def has_runs(question: Question, rows: Sequence[Row]) -> bool:
    """Return whether a contrast of the question has a seed that all of its cells have."""
    return any(contrast_of(one, rows, question.of) for one in question.contrasts.values())


def expected_best(values: Sequence[float], trials: int) -> float:
    """Return the expected maximum of `trials` values drawn with replacement (Dodge et al. 2019)."""
    ordered, count = sorted(values), len(values)
    chance = [(place / count) ** trials for place in range(count + 1)]
    return sum(v * (chance[i] - chance[i - 1]) for i, v in enumerate(ordered, 1))


def markdown_table(rows: Sequence[Mapping[str, str]], left: int) -> str:
    """Return rows of equal columns as a table; all columns but the first `left` are numbers."""
    return markdown_of(
        pd.DataFrame([{name: escape_markdown(v) for name, v in row.items()} for row in rows]), left
    )


def signed(estimate: SeedMean | None, points: bool = True) -> str:
    """Return a difference with its interval, in points or as it is; a dash for None.

    A bound that would be printed as 0 has a digit more if the interval excludes 0.
    """
    if estimate is None:
        return NONE
    by, digits = (100, 1) if points else (1, 2)
    words, interval = f"{by * estimate.mean:+.{digits}f}", estimate.interval
    if interval is None:
        return words
    excludes = interval.low * interval.high > 0
    low, high = (
        f"{bound:+.{digits + (excludes and abs(bound) < 0.5 / 10**digits)}f}"
        for bound in (by * interval.low, by * interval.high)
    )
    return f"{words} ({low} to {high})"


def mean_of(values: Sequence[float | None], form: str, times: float = 1) -> str:
    """Return the mean of those that are known, or a dash."""
    known = [value for value in values if value is not None]
    return format(times * fmean(known), form) if known else NONE


def published_score(task: str, labelled: int, method: str) -> str:
    """Return the paper's score with the task's own text, of as many labels as it had, or a dash."""
    (table,) = (table for table in paper_tables() if table.key == "table_1")
    if labelled != _LABELS.get(task) or method not in _COLUMNS or task not in table.published:
        return NONE
    mean, deviation = table.published[task].scores[_COLUMNS[method]]
    return f"{mean:.2f} ± {deviation:.2f}"
