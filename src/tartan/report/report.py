"""Assembles a report of a folder of runs, and writes it: tables, figures, Markdown, one page."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tartan.errors import UserError
from tartan.figures.style import save
from tartan.files import check_written_folder, escape_markdown, one_line
from tartan.report.comparison import ComparisonOptions
from tartan.report.paper import paper_table, paper_tables
from tartan.report.pictures import Picture, pictures_of
from tartan.report.runs import Folders, find_runs
from tartan.report.settings import Benchmark, benchmarks_of, differing_options
from tartan.report.summary import inventory, sentences_of
from tartan.report.tables import ResultTable, overview, to_csv, to_latex, to_markdown
from tartan.runs.command_line import duration
from tartan.runs.result import PARTS

PAGE = "report.html"


@dataclass(frozen=True)
class BenchmarkReport:
    """A benchmark's sentences, and its tables: for all of test and, if it differs, unseen."""

    bench: Benchmark
    sentences: list[str]
    tables: list[ResultTable]


@dataclass(frozen=True)
class Report:
    """The content of a report of a folder of runs.

    Attributes:
        inventory: a sentence about the runs that were read.
        paper: the paper's tables for which there are runs.
        without_runs: titles of the paper's other tables.
        remarks: lines about what could not be read or drawn.
    """

    folders: Folders
    choice: ComparisonOptions
    inventory: str
    benches: list[BenchmarkReport]
    paper: list[ResultTable]
    without_runs: list[str]
    pictures: list[Picture]
    remarks: list[str]

    @property
    def progress(self) -> str:
        """The state of the runs in words, e.g. `8 finished, 1 running`; empty if all are over."""
        counts = self.folders.counts
        return (
            "" if self.folders.is_over else ", ".join(f"{n} {state}" for state, n in counts.items())
        )


def report_of(root: Path, choice: ComparisonOptions) -> Report:
    """Read the runs below `root` and compare them.

    Raises:
        UserError: there are none.
    """
    folders = find_runs(root)
    if not (folders.jobs or folders.unreadable):
        raise UserError(f"there are no runs in {root}")
    benches = benchmarks_of(folders.runs)
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
        tables = [paper_table(definition, benches, part, choice) for part in PARTS]
        paper += [table for table in tables if table is not None]
        if not any(tables):
            without_runs.append(f"{definition.title} ({definition.paper})")
    remarks = [f"not read: {name}: {reason}" for name, reason in folders.unreadable.items()]
    pictures = pictures_of(benches, remarks)
    summary = inventory(folders, benches)
    return Report(folders, choice, summary, reports, paper, without_runs, pictures, remarks)


def write_report(report: Report, folder: Path) -> None:
    """Write `report.html`, `report.md`, `tables/` and `figures/` into `folder`.

    Raises:
        UserError: the folder cannot be written, or a link in it leads elsewhere.
    """
    check_written_folder(folder)
    try:
        for picture in report.pictures:
            save(picture.figure, folder / "figures", picture.name)
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in [*(t for part in report.benches for t in part.tables), *report.paper]:
            for ending, text in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
                path = folder / "tables" / f"{table.key}.{table.part}.{ending}"
                path.write_text(text(table), encoding="utf-8")
        for name in ("report.md", PAGE):
            (folder / name).write_text(_rendered(name, report, folder / "figures"), "utf-8")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise UserError(f"cannot write the report ({reason}); name a folder: --out") from error


def _rendered(template: str, report: Report, figures: Path) -> str:
    """Return the report by a template.

    The HTML page loads nothing else and shows text from runs as text; figures are in it as data
    URIs: as images they can neither run scripts nor load anything.
    """

    def image(picture: Picture) -> str:
        content = (figures / f"{picture.name}.svg").read_bytes()
        return "data:image/svg+xml;base64," + base64.b64encode(content).decode("ascii")

    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here),
        autoescape=template == PAGE,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            one_line(value) if template == PAGE and type(value) is str else value
        ),
    )
    environment.filters |= {"duration": duration, "md": escape_markdown, "table": to_markdown}
    page: str = environment.get_template(template).render(
        report=report,
        written=time.strftime("%Y-%m-%d %H:%M"),
        style=Markup((here / "style.css").read_text(encoding="utf-8")),
        script=Markup((here / "script.js").read_text(encoding="utf-8")),
        image=image,
        differing=lambda bench: differing_options([one.options for one in bench.settings]),
    )
    return page
