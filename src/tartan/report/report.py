"""Assembles a report of a folder of runs, and writes it: tables, figures, Markdown, one page."""

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tartan.errors import UserError
from tartan.figures import save
from tartan.files import check_written_folder
from tartan.report.comparison import LEVEL, Benchmark, benchmarks_of, best_against_others
from tartan.report.paper import paper_table, paper_tables
from tartan.report.pictures import Picture, pictures_of
from tartan.report.runs import Folders, find_runs
from tartan.report.tables import (
    ResultTable,
    overview,
    rendered,
    score_of,
    sentences,
    to_csv,
    to_latex,
    to_markdown,
)
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
    """The content of a report of a folder of runs."""

    folders: Folders
    paired: bool
    holm: bool
    inventory: str  # a sentence about the runs that were read
    benches: list[BenchmarkReport]
    paper: list[ResultTable]  # the paper's tables for which there are runs
    pictures: list[Picture]
    remarks: list[str]  # about what could not be read or drawn


def report_of(root: Path, paired: bool = False, holm: bool = False) -> Report:
    """Read the runs below `root` and compare them, those of a seed in pairs if `paired`."""
    folders = find_runs(root)
    if not (folders.runs or folders.unfinished or folders.unreadable):
        raise UserError(f"there are no runs in {root}")
    benches = benchmarks_of(folders.runs, paired, holm)
    reports = []
    for bench in benches:
        tables = [overview(bench, part) for part in bench.parts]
        reports.append(BenchmarkReport(bench, sentences_of(bench), tables))
    paper = [paper_table(table, benches, part) for table in paper_tables() for part in PARTS]
    remarks = [f"not read: {name}: {reason}" for name, reason in folders.unreadable.items()]
    return Report(
        folders,
        paired,
        holm,
        rendered("inventory.txt", folders=folders, benches=benches),
        reports,
        [table for table in paper if table is not None],
        pictures_of(benches, remarks),
        remarks,
    )


def write_report(report: Report, folder: Path) -> None:
    """Write `report.html`, `report.md`, `tables/` and `figures/` into `folder`."""
    check_written_folder(folder)

    def image(picture: Picture) -> str:
        content = (folder / "figures" / f"{picture.name}.svg").read_bytes()
        return "data:image/svg+xml;base64," + base64.b64encode(content).decode("ascii")

    try:
        for picture in report.pictures:
            path = folder / "figures" / picture.name
            save(picture.figure, *(path.with_name(f"{path.name}.{e}") for e in ("svg", "png")))
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in [*(t for part in report.benches for t in part.tables), *report.paper]:
            for ending, write in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
                path = folder / "tables" / f"{table.key}.{table.part}.{ending}"
                path.write_text(write(table), encoding="utf-8")
        now = time.strftime("%Y-%m-%d %H:%M")
        for name in ("report.md", PAGE):
            text = rendered(name, report=report, written=now, image=image, markdown=to_markdown)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise UserError(f"cannot write the report ({reason}); name a folder: --out") from error


def sentences_of(bench: Benchmark) -> list[str]:
    """Return the sentences that a benchmark's runs and their number allow."""
    ranked, compared = best_against_others(bench, "whole")
    unseen, compared_unseen = best_against_others(bench, "unseen")
    if not ranked:
        return []
    tf_idf = {
        run.result.seed: (one.dev[run.result.metric], one.test[run.result.metric])
        for run in bench.runs
        for one in run.result.baselines
        if one.name == "tf_idf" and one.test
    }
    return sentences(
        "summary.txt",
        bench=bench,
        ranked=ranked,
        compared=compared,
        tests=[run.result.test for run in bench.runs],
        unseen=unseen,
        compared_unseen=compared_unseen,
        tf_idf=[100 * fmean(column) for column in zip(*tf_idf.values(), strict=True)],
        tf_idf_seeds=len(tf_idf),
        score_of=score_of,
        level=LEVEL,
    )
