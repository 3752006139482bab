"""The command `tartan report RUNS_DIR`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tartan.errors import UserError
from tartan.runs.command_line import quiet_at_closed_pipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report of a folder of runs, print a summary, and return the exit code."""
    options = _parser().parse_args(arguments)
    # here, so that --help answers at once
    from rich.console import Console

    from tartan.files import one_line
    from tartan.report.report import PAGE, report_of, write_report
    from tartan.report.tables import to_terminal

    out = options.out or options.runs / "report"
    try:
        if options.out is None and out.is_symlink():
            raise UserError(f"{out} is a link; name the folder to write to: --out")
        report = report_of(options.runs, options.paired, options.holm)
        write_report(report, out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    lines = [report.inventory]
    for part in report.benches:
        print(*map(one_line, lines), "", sep="\n")  # names may hold what moves a cursor
        Console().print(to_terminal(part.tables[0]))
        lines = [f"- {sentence}" for sentence in part.sentences]
    print(*map(one_line, [*lines, *report.remarks]), "", out / PAGE, sep="\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Tables, p-values, figures and one HTML page from a folder of runs."
    parser = argparse.ArgumentParser(prog="tartan report", description=about)
    parser.add_argument("runs", type=Path, metavar="RUNS_DIR", help="the folder, e.g. runs")
    out = "where to write (default: RUNS_DIR/report)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    for option, words in (
        ("--paired", "compare runs of the same seed (only seeds that both sides have)"),
        ("--holm", "correct the p-values over each table, in the summary too (Holm)"),
    ):
        parser.add_argument(option, action="store_true", help=words)
    return parser


def command() -> None:
    """Run the command line of this process."""
    with quiet_at_closed_pipe():
        sys.exit(main())


if __name__ == "__main__":
    command()
