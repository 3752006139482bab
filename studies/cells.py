"""Runs a part's cells with `python -m src.run`, and stores their rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from studies.part import BESIDE, Cell, Part, cells_of
from studies.row import CELL, CellNote, Row, read_rows, row_of, write_rows
from tartan.errors import UserError
from tartan.files import read_json, write_text_durably
from tartan.runs.command_line import run_child
from tartan.settings import quoted


def run_part(
    name: str,
    part: Part,
    *,
    runs: Path,
    results: Path,
    options: Sequence[str],
    seeds: int | None = None,
    only: str = "",
) -> list[str]:
    """Run what has no row yet, one cell after the other; a row is written as each is finished.

    A cell that was stopped goes on where it was. One that fails does not stop the others.
    """
    part = part if seeds is None else part.with_seeds(seeds)
    path, planned = results / f"{name}.csv", list(cells_of(name, part))
    cells = [c for c in planned if only in ("", c.budget, f"{c.budget}/{c.setting}")]
    if not cells:
        raise UserError(f"part {name} has no cells {only}; give a BUDGET or BUDGET/SETTING of it")
    failed = []
    for number, cell in enumerate(cells, 1):
        if cell.key in {row.key for row in read_rows(path)}:
            continue
        print(f"{number} of {len(cells)}: {cell.place}", flush=True)
        row = None
        try:
            row = _row(cell, runs / cell.place, options)
        except UserError as error:
            print(f"error: {cell.place}: {error}", file=sys.stderr)
        if row is None:
            failed.append(cell.place)
        else:
            keep(path, [row], planned)
    return failed


def keep(path: Path, rows: Sequence[Row], order: Iterable[Cell]) -> None:
    """Add rows to those that are stored, in the order of the cells."""
    known = {row.key: row for row in (*read_rows(path), *rows)}
    places = {cell.key: place for place, cell in enumerate(order)}
    # those of seeds beyond the part's come last
    write_rows(path, sorted(known.values(), key=lambda r: (places.get(r.key, len(places)), r.key)))


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in `folder`, marked if files differ from it."""
    git = ["git", "-C", str(folder)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        return "unknown"
    differs = subprocess.run(
        [*git, "diff", "--quiet", "HEAD", "--", "src", "conf", "studies"], check=False
    )
    return found.stdout.strip() + ("" if differs.returncode == 0 else "-changed")


def train(overrides: Sequence[str], folder: Path) -> int:
    """Run `python -m src.run` in a process of its own, and return its exit code (`run_child`)."""
    place = f"hydra.run.dir={quoted(folder)}"
    return run_child([sys.executable, "-m", "tartan", "run", *overrides, place])


def _row(cell: Cell, folder: Path, options: Sequence[str]) -> Row | None:
    """Run a cell and return its row; None if training it failed."""
    commit = commit_of(Path(__file__).parent)
    if cell.method in BESIDE:
        from studies.classifiers import ROWS

        return ROWS[cell.method](cell, options, folder, commit)
    _write_note(cell, folder, commit)
    code = train([*cell.overrides, *options], folder)
    if code > 128:
        sys.exit(code)  # by a signal: the same command goes on
    return row_of(folder, cell.draws_data) if code == 0 else None


def _write_note(cell: Cell, folder: Path, commit: str) -> None:
    """Record in a run folder its cell and commit; all commits, if another one resumes the run."""
    path = folder / CELL
    if path.is_file():
        before = read_json(path, CellNote).commit
        commit = before if before.endswith(commit) else f"{before}+{commit}"
    note = CellNote(part=cell.part, budget=cell.budget, setting=cell.setting, commit=commit)
    write_text_durably(path, note.model_dump_json() + "\n")
