"""A table of a report before it is text: what each cell holds, and which runs are behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, stdev

from src.report.reading.settings import Setting
from src.run_folder.result import Part

SMALLEST_P = 0.001
"""p-values below are given as such."""


@dataclass(frozen=True)
class Score:
    """Mean and standard deviation over seeds, as shares of 1.

    Attributes:
        mean: over the seeds.
        deviation: the sample's (n - 1); None for a single seed.
        seeds: how many.
        setting: the runs behind it; None for the paper's.
        best: to be set in bold: significantly better than what it is compared with.
        fewer: it has fewer seeds than another cell of its row.
        others: further settings that would have belonged here.
    """

    mean: float
    deviation: float | None
    seeds: int
    setting: Setting | None = None
    best: bool = False
    fewer: bool = False
    others: int = 0

    @property
    def words(self) -> str:
        """In percent, e.g. `70.48 ± 4.42`."""
        deviation = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.mean:.2f}{deviation}"


@dataclass(frozen=True)
class Number:
    """A number with the text that shows it."""

    value: float
    words: str
    setting: Setting | None = None


@dataclass(frozen=True)
class Words:
    """Text, with the runs it speaks of, if any."""

    words: str
    setting: Setting | None = None


Cell = Score | Number | Words
NO_RUNS = Words("no runs")


@dataclass(frozen=True)
class Row:
    """A row: its name, whose numbers it holds, and its cells."""

    name: str
    whose: str
    cells: tuple[Cell, ...]
    from_paper: bool = False


@dataclass(frozen=True)
class ResultTable:
    """A table of a report.

    Attributes:
        key: names it in files and anchors.
        title: what it shows.
        part: of the test split that it is about.
        heads: of the first two columns.
        columns: names of the others.
        rows: in order.
        notes: sentences below it.
    """

    key: str
    title: str
    part: Part
    heads: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def score_of(setting: Setting, part: Part, others: int = 0) -> Cell:
    """A setting's cell."""
    values = list(setting.scores(part).values())
    if not values:
        return Words("no such texts", setting)
    deviation = stdev(values) if len(values) > 1 else None
    return Score(fmean(values), deviation, len(values), setting, others=others)


def p_words(p: float, adjusted: bool = False) -> str:
    """E.g. `0.040`, `<0.001`; Holm's are marked."""
    words = f"{p:.3f}" if p >= SMALLEST_P else f"<{SMALLEST_P}"
    return f"{words} (Holm)" if adjusted else words
