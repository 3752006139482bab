"""Writes a report as files: tables, figures, a Markdown file and an HTML page."""

from __future__ import annotations

from pathlib import Path

from tartan.errors import UserError
from tartan.figures.style import save
from tartan.files import check_written_folder, escape_markdown
from tartan.report.page.page import page_of
from tartan.report.reading.progress import Progress
from tartan.report.report import Report
from tartan.report.tables.summary import in_words
from tartan.report.text import to_csv, to_latex, to_markdown
from tartan.run_folder.duration import duration

PAGE = "report.html"
TEXT = "report.md"


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
        for table in report.tables:
            for ending, write in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
                path = folder / "tables" / f"{table.key}.{table.part}.{ending}"
                path.write_text(write(table), encoding="utf-8")
        (folder / TEXT).write_text(_text(report), encoding="utf-8")
        (folder / PAGE).write_text(page_of(report, folder / "figures"), encoding="utf-8")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise UserError(f"cannot write the report ({reason}); name a folder: --out") from error


def progress_line(progress: Progress) -> str:
    """Return the progress in words, e.g. `8 finished, 1 running, 3 missing; about 12 min left`."""
    line = ", ".join(f"{count} {state}" for state, count in progress.counts.items())
    if progress.seconds_left is not None:
        line += f"; about {duration(progress.seconds_left)} left"
    return line


def _text(report: Report) -> str:
    blocks = ["# Report", escape_markdown(in_words(report.inventory))]
    if not report.progress.is_over:
        blocks.append(f"Progress: {progress_line(report.progress)}.")
    for part in report.benches:
        blocks.append(f"## {escape_markdown(part.bench.label)}")
        blocks += ["\n".join(f"- {escape_markdown(in_words(s))}" for s in part.sentences)]
        blocks += [to_markdown(table) for table in part.tables]
        blocks += _images(report, part.bench.key)
    blocks += ["## The paper's tables", *(to_markdown(table) for table in report.paper)]
    if report.without_runs:
        blocks.append("No runs for: " + "; ".join(report.without_runs) + ".")
    blocks += _images(report, "")
    lines = [*(f"{u.name}: {u.reason}" for u in report.unreadable), *report.remarks]
    if lines:
        blocks += ["## Not read", "\n".join(f"- {escape_markdown(line)}" for line in lines)]
    return "\n\n".join(blocks) + "\n"


def _images(report: Report, bench: str) -> list[str]:
    """Return a benchmark's pictures in Markdown; those of no benchmark have the key `""`."""
    return [f"![{p.caption}](figures/{p.name}.png)" for p in report.pictures if p.bench == bench]
