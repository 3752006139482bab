"""The command line `python -m src.compare task=files task.train=... seeds=3`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from tartan.command_line.child import run_child
from tartan.command_line.closed_pipe import quiet_at_closed_pipe
from tartan.compare.budget import WITH_END_TASK, Costs, Steps, equal_steps, spent
from tartan.compare.experiments import evaluations_of, write_experiment
from tartan.compare.request import Request, check_domain_text, request_of
from tartan.errors import UserError
from tartan.files import Plain, process_lock, read_json, write_text_durably
from tartan.run_folder.name import RESULT
from tartan.run_folder.result import read_result
from tartan.run_folder.sweep import RECORDS
from tartan.settings import quoted

PLAN = "compare.json"
"""File in the comparison's folder with its options, the cost of a step, and each stage's steps."""
_HELP = """\
python -m src.compare [NAME=VALUE ...]

Trains every method on one task at equal cost and reports on them. Options of its own:
  methods=finetune,tapt,dapt,mt_tartan,meta_tartan
                   also dapt_tapt, tapt_mt_tartan, tapt_meta_tartan, aang, aang_static,
                   pretrain (images)
  seeds=3          runs of each method, with seeds 0, 1, 2
  steps=200        optimiser steps of the most expensive method; the others take as many operations
  batch_size=32    examples of each task in a step
  evaluations=10   on dev, in each stage with the end task; a stage of at most
                   (evaluations - 1)^2 steps may have fewer
  pilot_steps=4    steps of each stage in which its cost is counted
  folder=runs/compare
  METHOD:OPTION=VALUE   an option of one method, e.g. meta_tartan:weighting.eta=0.1 or
                   mt_tartan:weighting=uniform
All others are options of all runs: task=, encoder=, auxiliary=, hydra/launcher=, ...
"""


class _Plan(Plain):
    asked: dict[str, Any]
    tables: dict[str, str] = Field(default_factory=dict)  # which earlier versions did not keep
    costs: dict[str, dict[str, float]]
    steps: dict[str, dict[str, int]]


def main(arguments: Sequence[str]) -> int:
    """Measure the cost of steps, plan the stages, train all methods, and report.

    Returns:
        The exit code: 0, 1 for an error or a failed run, 130 after Ctrl-C.
    """
    if {"-h", "--help"} & set(arguments):
        print(_HELP)
        return 0
    if not any(argument.startswith("task=") for argument in arguments):
        print(
            "no task= given: docstrings of Python libraries; of your own table: task=files "
            "task.train=FILE",
            file=sys.stderr,
        )
    try:
        request = request_of(arguments)
        check_domain_text(request)
        busy = (
            f"another comparison is running in {request.folder}; wait for it, or name another "
            "folder: folder=FOLDER"
        )
        with process_lock(request.folder / "compare.lock", busy):
            return _compare(request)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _compare(request: Request) -> int:
    """Return the exit code of a comparison of which the options are checked.

    Raises:
        UserError: the folder holds another comparison, or the pilot failed.
    """
    try:
        plan = _planned(request)
        for method in request.methods:
            write_experiment(method, request, plan.steps[method])
    except KeyboardInterrupt:
        print("stopped before the first run; run the same command again", file=sys.stderr)
        return 128 + signal.SIGINT
    _show(plan.costs, plan.steps, request.evaluations)
    seeds = ",".join(str(seed) for seed in range(request.seeds))
    swept = run_child(_sweep(request, request.folder, seeds))
    if swept not in (0, 1):
        return swept  # stopped by a signal: the same command goes on
    report = [sys.executable, "-m", "tartan", "report", str(request.folder)]
    return max(swept, run_child(report))


def _planned(request: Request) -> _Plan:
    """Return the stored plan of this comparison, or make one.

    Raises:
        UserError: the folder holds another comparison, or the pilot failed.
    """
    path = request.folder / PLAN
    if path.is_file():
        try:
            plan = read_json(path, _Plan)
        except UserError as error:
            raise UserError(f"{error}; remove {path}, or name another folder: folder=") from error
        asked = request.identity()
        differing = [name for name, value in asked.items() if plan.asked.get(name) != value]
        if differing:
            words = {"overrides": "options", "own_options": "options of single methods"}
            raise UserError(
                f"{request.folder} holds a comparison with other "
                f"{', '.join(words.get(name, name) for name in differing)}; "
                "name another folder: folder=FOLDER"
            )
        tables = request.tables()
        changed = [name for name in tables if plan.tables.get(name, tables[name]) != tables[name]]
        if changed:
            raise UserError(
                f"{', '.join(changed)} changed since the comparison in {request.folder} began; "
                "name another folder: folder=FOLDER"
            )
        return plan
    costs = _measured(request)
    steps = equal_steps(costs, request.steps)
    plan = _Plan(asked=request.identity(), tables=request.tables(), costs=costs, steps=steps)
    write_text_durably(path, plan.model_dump_json(indent=1) + "\n")
    return plan


def _measured(request: Request) -> dict[str, dict[str, float]]:
    """Return the floating-point operations of a step of each stage, counted in a few steps.

    Raises:
        UserError: a method cannot be trained.
    """
    for method in request.methods:
        write_experiment(method, request, None)
    count = len(request.methods)
    print(f"counting what a step of each of {count} methods costs, for some minutes", flush=True)
    extra = [f"max_steps={request.pilot_steps}", "evaluate_test=false", "logger=none"]
    costs: dict[str, dict[str, float]] = {}
    # beside the folder, not in it: its report is of the comparison's own runs; and hidden, so that
    # nothing takes what a kill leaves for runs
    folder = request.folder.parent / f".pilot-{request.folder.name}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        command = [*_sweep(request, folder, "0"), *extra, "trainer.enable_progress_bar=false"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(_reason(folder, done.stderr))
        for path in folder.rglob(RESULT):
            result = read_result(path.parent)
            costs[result.method] = {
                stage.name: (stage.flops or 0.0) / stage.steps for stage in result.stages
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {method: costs[method] for method in request.methods}


def _reason(pilot: Path, errors: str) -> str:
    """Return why the pilot failed: its first failed job's cause, or the command line's error."""
    for path in sorted(pilot.glob(f"{RECORDS}/*/[0-9]*.json")):
        job = json.loads(path.read_text(encoding="utf-8"))
        if job["state"] == "failed":
            return str(job["cause"])
    lines = [line for line in errors.splitlines() if line.strip()]
    found = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (found or lines[-1:] or ["the pilot was stopped"])[0]


def _sweep(request: Request, folder: Path, seeds: str) -> list[str]:
    # no URI: Hydra would look for a folder with `%20` in its name
    configs = f"file://{request.folder.absolute() / 'conf'}"
    experiments = ",".join(f"compare_{method}" for method in request.methods)
    return [
        sys.executable, "-m", "tartan", "run", "-m",
        f"hydra.searchpath=[{quoted(configs)}]",
        f"hydra.sweep.dir={quoted(folder)}",
        f"+experiment={experiments}",
        f"seed={seeds}",
        *request.overrides,
    ]  # fmt: skip


def _show(costs: Costs, steps: Steps, evaluations: int) -> None:
    from rich.console import Console

    from tartan.command_line.tables import titled_table

    heads = ("method", "stage", "GFLOP a step", "steps", "evaluations", "GFLOP")
    table = titled_table("equal cost", *heads)
    table.columns[1].justify = "left"
    totals = spent(costs, steps)
    for method, stages in steps.items():
        for index, (stage, number) in enumerate(stages.items()):
            cost = costs[method][stage]
            total = f"{totals[method] / 1e9:,.3g}" if index == 0 else ""
            looks = f"{evaluations_of(number, evaluations)}" if stage in WITH_END_TASK else ""
            row = (f"{cost / 1e9:,.3g}", f"{number:,}", looks, total)
            table.add_row(method if index == 0 else "", stage, *row)
    Console().print(table)


def command() -> None:
    """Run the command line of this process."""
    with quiet_at_closed_pipe():
        sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()
