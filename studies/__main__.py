"""The command line `python -m studies run suspects` or `write`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tartan.errors import UserError
from tartan.runs.command_line import quiet_at_closed_pipe

_RESULTS = Path("docs") / "results"
_EPILOG = """\
parts: the files of studies/conf/. Options of all runs follow as NAME=VALUE, e.g.
  python -m studies run suspects data_dir=../shared/data trainer=cpu
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a part's cells that have no row yet, or write the pages."""
    options = _arguments(arguments)
    from studies.cells import run_part
    from studies.part import all_parts, read_part

    try:
        if options.action == "run":
            chosen = {options.part: read_part(options.part)} if options.part else all_parts()
            for name, part in chosen.items():
                failed = run_part(
                    name,
                    part,
                    runs=(Path("runs") / "study").absolute(),
                    results=_RESULTS,
                    options=options.options,
                    seeds=options.seeds,
                    only=options.only,
                )
                if failed:
                    again = "the same command tries it again"
                    print(f"failed: {', '.join(failed)}; {again}", file=sys.stderr)
                    return 1
        _write(_RESULTS)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _write(results: Path) -> None:
    """Write the pages and the figures of the committed rows."""
    from studies.page import draw_costs, draw_differences, main_rows, pages_of
    from studies.part import all_parts
    from studies.row import read_rows
    from tartan.figures import save
    from tartan.files import write_text_durably

    parts = all_parts()
    rows = {name: read_rows(results / f"{name}.csv") for name in parts}
    for name, text in zip(
        (results.name, f"{results.name}_all"), pages_of(parts, rows), strict=True
    ):
        write_text_durably(results.with_name(f"{name}.md"), text)
    save(draw_differences(parts, rows), results / "differences.svg")
    save(draw_costs(main_rows(parts, rows)), results / "cost.svg")
    print(results.with_name(f"{results.name}.md"))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options; those of runs may stand behind `--seeds` and `--only`."""
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Does training together pay? Tasks, methods, budgets and seeds at equal cost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "action", choices=["run", "write"], help="train what has no row yet, or write the pages"
    )
    parser.add_argument("part", nargs="?", help="a file of studies/conf/ (run: default all)")
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE", help="options of all runs")
    parser.add_argument("--seeds", type=int, help="seeds of each cell (default: the part's)")
    parser.add_argument(
        "--only", default="", metavar="BUDGET[/SETTING]",
        help="only cells of this budget, or this one",
    )  # fmt: skip
    options = parser.parse_intermixed_args(arguments)
    if "=" in (options.part or ""):
        options.options, options.part = [options.part, *options.options], None
    wrong = [one for one in options.options if "=" not in one or options.action != "run"]
    if wrong:
        parser.error(f"unrecognized arguments: {' '.join(wrong)}")
    return options


if __name__ == "__main__":
    with quiet_at_closed_pipe():
        sys.exit(main())
