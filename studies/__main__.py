"""The command line `python -m studies run suspects`, `collect` or `write`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tartan.command_line.closed_pipe import quiet_at_closed_pipe
from tartan.errors import UserError

_EPILOG = """\
parts: the files of conf/study/. Options of all runs follow as NAME=VALUE, e.g.
  python -m studies run suspects data_dir=../shared/data trainer=cpu
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a part's cells that have no row yet, collect rows of runs, or write docs/results.md.

    Returns:
        The exit code: 0, or 1 for an error or a failed cell.
    """
    options = _arguments(arguments)
    try:
        return int(options.action(options))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    from studies.cells import run_part
    from studies.part import all_parts, read_part

    chosen = {options.part: read_part(options.part)} if options.part else all_parts()
    for name, part in chosen.items():
        failed = run_part(
            name,
            part,
            runs=options.runs.absolute(),
            results=options.results,
            options=options.options,
            seeds=options.seeds,
            only=options.only,
        )
        for place in failed:
            print(f"failed: {place}; the same command tries it again", file=sys.stderr)
        if failed:
            return 1
    return _write(options)


def _collect(options: argparse.Namespace) -> int:
    from studies.cells import collect
    from studies.part import read_part

    rows = collect(
        options.part, read_part(options.part), runs=options.runs, results=options.results
    )
    print(f"{options.results / options.part}.csv: {len(rows)} runs of {options.runs} are in it")
    return _write(options)


def _write(options: argparse.Namespace) -> int:
    from studies.cost_figure import draw_costs
    from studies.document import document_of
    from studies.part import all_parts
    from studies.row import read_rows
    from tartan.figures.style import save_svg
    from tartan.files import write_text_durably

    parts = all_parts()
    rows = {name: read_rows(options.results / f"{name}.csv") for name in parts}
    text, path = document_of(parts, rows), options.results.with_name(f"{options.results.name}.md")
    for name, own in rows.items():
        picture = draw_costs(own)
        if picture is not None:
            save_svg(picture, options.results / f"{name}.svg")
    write_text_durably(path, text)
    print(path)
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options; those of runs may stand behind `--seeds` and `--only`."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    unknown = [one for one in rest if one.startswith("-") or "=" not in one]
    if unknown or (rest and options.action is not _run):
        parser.error(f"unrecognized arguments: {' '.join(unknown or rest)}")
    if options.action is _run:
        options.options += rest
        if "=" in (options.part or ""):
            options.options, options.part = [options.part, *options.options], None
    return options


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--results", type=Path, default=Path("docs") / "results", metavar="DIR",
        help="the folder of the rows; the page is written beside it (default: docs/results)",
    )  # fmt: skip
    runs = argparse.ArgumentParser(add_help=False)
    runs.add_argument(
        "--runs", type=Path, default=Path("runs") / "study", metavar="DIR",
        help="the folder of the runs (default: runs/study)",
    )  # fmt: skip
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Does training together pay? Tasks, methods, budgets and seeds at equal cost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(required=True)
    run = actions.add_parser("run", parents=[shared, runs], help="train what has no row yet")
    run.add_argument("part", nargs="?", help="a file of conf/study/ (default: all)")
    run.add_argument("options", nargs="*", metavar="NAME=VALUE", help="options of all runs")
    run.add_argument("--seeds", type=int, help="seeds of each cell (default: the part's)")
    run.add_argument(
        "--only",
        default="",
        metavar="BUDGET[/SETTING]",
        help="only cells of this budget, or this one",
    )
    run.set_defaults(action=_run)
    collect = actions.add_parser(
        "collect", parents=[shared, runs], help="keep the rows of runs trained elsewhere"
    )
    collect.add_argument("part")
    collect.set_defaults(action=_collect)
    write = actions.add_parser("write", parents=[shared], help="write docs/results.md")
    write.set_defaults(action=_write)
    return parser


if __name__ == "__main__":
    with quiet_at_closed_pipe():
        sys.exit(main())
