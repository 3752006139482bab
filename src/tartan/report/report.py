"""Assembles the content of a report before any of it is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tartan.errors import UserError
from tartan.report.figures.pictures import Picture, pictures_of
from tartan.report.reading.grouping import Benchmark, benchmarks_of
from tartan.report.reading.progress import Progress, progress_of
from tartan.report.reading.search import Found, Unreadable, search
from tartan.report.tables.paper import paper_tables
from tartan.report.tables.paper_table import paper_table
from tartan.report.tables.summary import Sentence, inventory, sentences_of
from tartan.report.tables.table import ResultTable
from tartan.report.verdicts.comparison import ComparisonOptions
from tartan.report.verdicts.overview import overview
from tartan.run_folder.result import PARTS


@dataclass(frozen=True)
class BenchmarkReport:
    """A benchmark's sentences, and its tables: for all of test and, if it differs, unseen."""

    bench: Benchmark
    sentences: list[Sentence]
    tables: list[ResultTable]


@dataclass(frozen=True)
class Report:
    """The content of a report of a folder of runs.

    Attributes:
        found: the runs that were read.
        choice: options of comparisons.
        progress: the state of the runs.
        inventory: a sentence about the runs that were read.
        benches: the benchmarks in order.
        paper: the paper's tables for which there are runs.
        without_runs: titles of the paper's other tables.
        pictures: the static figures.
        remarks: lines about what could not be drawn.
    """

    found: Found
    choice: ComparisonOptions
    progress: Progress
    inventory: Sentence
    benches: list[BenchmarkReport]
    paper: list[ResultTable]
    without_runs: list[str]
    pictures: list[Picture]
    remarks: list[str]

    @property
    def tables(self) -> list[ResultTable]:
        """All tables."""
        return [*(table for bench in self.benches for table in bench.tables), *self.paper]

    @property
    def unreadable(self) -> list[Unreadable]:
        """Runs and records of sweeps that could not be read."""
        return [*self.found.unreadable, *self.progress.unreadable]


def report_of(root: Path, choice: ComparisonOptions) -> Report:
    """Read the runs below `root` and compare them.

    Raises:
        UserError: there are none.
    """
    found = search(root)
    if not (found.runs or found.unfinished or found.unreadable):
        raise UserError(f"there are no runs in {root}")
    benches = benchmarks_of(found.runs)
    reports = [
        BenchmarkReport(
            bench,
            sentences_of(bench, choice),
            [overview(bench, p, choice) for p in PARTS if p == "whole" or bench.has_two_parts],
        )
        for bench in benches
    ]
    paper: list[ResultTable] = []
    without_runs: list[str] = []
    for definition in paper_tables():
        of_parts = [paper_table(definition, benches, part, choice) for part in PARTS]
        tables = [table for table in of_parts if table is not None]
        paper += tables
        if not tables:
            without_runs.append(f"{definition.title} ({definition.paper})")
    remarks: list[str] = []
    pictures = pictures_of(benches, remarks)
    return Report(
        found,
        choice,
        progress_of(found),
        inventory(found, benches),
        reports,
        paper,
        without_runs,
        pictures,
        remarks,
    )
