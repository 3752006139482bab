"""Defines a table's cells, with the runs behind each, before they become text."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, ClassVar

from tartan.evaluation.statistics import Interval
from tartan.report.reading.grouping import Setting
from tartan.run_folder.result import Part

SMALLEST_P = 0.001
"""p-values below this are written as smaller than it."""


@dataclass(frozen=True)
class Score:
    """Mean and standard deviation over seeds, as shares of 1.

    Attributes:
        value: mean over the seeds.
        deviation: sample standard deviation (n - 1); None for a single seed.
        seeds: number of seeds.
        setting: the setting behind it; None for the paper's numbers.
        significant: whether it is significantly better than what it is compared with; set in bold.
        fewer: whether it has fewer seeds than another cell of its row.
        others: number of further settings that would have belonged here.
        corpora: names of domain text of one's own, where other text could have been meant.
    """

    value: float
    deviation: float | None
    seeds: int
    setting: Setting | None = None
    significant: bool = False
    fewer: bool = False
    others: int = 0
    corpora: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The score in percent, e.g. `70.48 ± 4.42`."""
        deviation = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.value:.2f}{deviation}"

    @property
    def marks(self) -> str:
        """Marks that a table's notes explain.

        `†`: fewer seeds; `‡`: one of several settings; `§`: domain text of one's own.
        """
        found = {f"({self.seeds})†": self.fewer, "‡": self.others, "§": self.corpora}
        return " ".join(mark for mark, shown in found.items() if shown)


@dataclass(frozen=True)
class Words:
    """Text, with the runs that it is about, and the number that it shows, if any.

    The entries that a `Score` has besides are empty.
    """

    words: str
    setting: Setting | None = None
    value: float | None = None
    deviation: ClassVar[None] = None
    seeds: ClassVar[None] = None
    significant: ClassVar[None] = None
    marks: ClassVar[str] = ""


Cell = Score | Words
NO_RUNS = Words("no runs")


@dataclass(frozen=True)
class Row:
    """A row: its name, where its numbers are from, and its cells."""

    name: str
    whose: str
    cells: tuple[Cell, ...]
    from_paper: bool = False


@dataclass(frozen=True)
class ResultTable:
    """A table of a report.

    Attributes:
        key: name of the table in files and HTML ids.
        title: title of the table.
        part: the part of test that it is about.
        heads: names of the first two columns.
        columns: names of the other columns.
        rows: the rows in order.
        notes: sentences below the table.
    """

    key: str
    title: str
    part: Part
    heads: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def score_of(setting: Setting, part: Part, **marks: Any) -> Cell:
    """Return a setting's cell; `marks` are the further entries of its `Score`."""
    values = list(setting.scores(part).values())
    if not values:
        return Words("no such texts", setting)
    deviation = stdev(values) if len(values) > 1 else None
    return Score(fmean(values), deviation, len(values), setting, **marks)


def p_words(p: float, adjusted: bool = False) -> str:
    """Return a p-value in words, e.g. `0.040`, `<0.001`; adjusted ones are marked."""
    words = f"{p:.3f}" if p >= SMALLEST_P else f"<{SMALLEST_P}"
    return f"{words} (Holm)" if adjusted else words


def interval_words(interval: Interval, signed: bool = False) -> str:
    """Return an interval of shares in points, e.g. `-1.20 to 3.40`."""
    form = "+.2f" if signed else ".2f"
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"
