"""The command line `python -m src.report RUNS_DIR`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tartan.errors import UserError
from tartan.runs.command_line import quiet_at_closed_pipe

if TYPE_CHECKING:
    from tartan.report.report import Report


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report of a folder of runs and print a short summary.

    Returns:
        The exit code: 0, or 1 for an error.
    """
    options = _parser().parse_args(arguments)
    # here, so that --help answers at once
    from tartan.report.comparison import ComparisonOptions
    from tartan.report.report import PAGE, report_of, write_report

    out = options.out or options.runs / "report"
    try:
        if options.out is None and out.is_symlink():
            raise UserError(f"{out} is a link; name the folder to write to: --out")
        report = report_of(options.runs, ComparisonOptions(options.paired, options.holm))
        write_report(report, out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _show(report)
    print(f"\n{out / PAGE}")
    return 0


def _show(report: Report) -> None:
    """Print a table and the sentences of each benchmark, and what could not be read."""
    from rich.console import Console

    from tartan.files import one_line
    from tartan.report.tables import to_terminal

    def show(*lines: str) -> None:
        for line in lines:
            print(one_line(line))  # names of folders may hold what moves a terminal's cursor

    show(report.inventory, *filter(None, [report.progress]))
    for part in report.benches:
        show("")
        if len(part.bench.settings) > 1:
            Console().print(to_terminal(part.tables[0]))
        else:
            show(part.bench.label)
        show(*(f"- {sentence}" for sentence in part.sentences))
    for remark in report.remarks:
        show("", remark)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m src.report",
        description="Tables, p-values, figures and one HTML page from a folder of runs, finished "
        "or still running.",
    )
    parser.add_argument("runs", type=Path, metavar="RUNS_DIR", help="the folder, e.g. runs")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: RUNS_DIR/report)"
    )
    parser.add_argument(
        "--paired",
        action="store_true",
        help="compare runs of the same seed with each other (only seeds that both sides have)",
    )
    parser.add_argument(
        "--holm",
        action="store_true",
        help="correct the p-values over each table, in the summary too (Holm)",
    )
    return parser


def command() -> None:
    """Run the command line of this process."""
    with quiet_at_closed_pipe():
        sys.exit(main())


if __name__ == "__main__":
    command()
