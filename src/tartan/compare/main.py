"""The command `tartan compare task=files task.train=... seeds=3`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tartan.compare.plan import WITH_END_TASK, equal_steps, evaluations_of, write_experiment
from tartan.compare.request import Request, request_of
from tartan.errors import UserError
from tartan.files import Plain, process_lock, read_json, write_text_durably
from tartan.runs.command_line import quiet_at_closed_pipe, run_child
from tartan.runs.name import RESULT
from tartan.runs.result import read_result
from tartan.runs.sweep import RECORDS
from tartan.settings import quoted

PLAN = "compare.json"
"""File in the comparison's folder with its options, the cost of a step, and each stage's steps."""
HELP = """\
tartan compare [NAME=VALUE ...]

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
All others are options of all runs: task=, encoder=, auxiliary=, hydra/launcher=, ... The
comparison decides seed, method, experiment, max_steps and evaluate_test.
"""


class Plan(Plain):
    """The content of `compare.json`: what was asked for, and what it was planned to be."""

    asked: dict[str, Any]
    costs: dict[str, dict[str, float]]
    steps: dict[str, dict[str, int]]


def main(arguments: Sequence[str]) -> int:
    """Measure the cost of steps, plan the stages, train all methods, and report.

    Returns:
        The exit code: 0, 1 for an error or a failed run, 130 after Ctrl-C.
    """
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    try:
        request = request_of(arguments)
        busy = f"another comparison is running in {request.folder}"
        with process_lock(request.folder / "compare.lock", busy):
            plan = _planned(request)
            for method in request.methods:
                write_experiment(method, request, plan.steps[method])
            print(_table(plan, request.evaluations), flush=True)
            seeds = ",".join(str(seed) for seed in range(request.seeds))
            code = run_child(_sweep(request, request.folder, seeds))
            if code not in (0, 1):
                return code  # stopped by a signal: the same command goes on
            report = [sys.executable, "-m", "tartan", "report", str(request.folder)]
            return max(code, run_child(report))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 128 + signal.SIGINT


def _planned(request: Request) -> Plan:
    """Return the stored plan of this comparison, or make one.

    Raises:
        UserError: the folder holds another comparison, or the pilot failed.
    """
    path, asked = request.folder / PLAN, request.identity()
    if path.is_file():
        plan = read_json(path, Plan)
        differing = sorted(
            name for name in asked | plan.asked if asked.get(name, "") != plan.asked.get(name, "")
        )
        if differing:
            raise UserError(
                f"{request.folder} holds a comparison with other {', '.join(differing)}; name "
                "another folder: folder=FOLDER"
            )
        return plan
    costs = _measured(request)
    plan = Plan(asked=asked, costs=costs, steps=equal_steps(costs, request.steps))
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
    # beside the folder, not in it: its report is of the comparison's own runs; and hidden, so that
    # nothing takes what a kill leaves for runs
    folder = request.folder.parent / f".pilot-{request.folder.name}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        command = [
            *_sweep(request, folder, "0"), f"max_steps={request.pilot_steps}",
            "evaluate_test=false", "logger=none", "trainer.enable_progress_bar=false",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(_reason(folder, done.stderr))
        results = [read_result(path.parent) for path in folder.rglob(RESULT)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    costs = {
        result.method: {stage.name: (stage.flops or 0.0) / stage.steps for stage in result.stages}
        for result in results
    }
    return {method: costs[method] for method in request.methods}


def _reason(pilot: Path, errors: str) -> str:
    """Return why the pilot failed: its first failed job's cause, or the command line's error."""
    for path in sorted(pilot.glob(f"{RECORDS}/*/[0-9]*.json")):
        job = json.loads(path.read_text(encoding="utf-8"))
        if job["state"] == "failed":
            return str(job["cause"])
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    return (lines or errors.splitlines()[-1:] or ["it was stopped"])[0].removeprefix("error: ")


def _sweep(request: Request, folder: Path, seeds: str) -> list[str]:
    """Return the command that runs all methods with some seeds, by their experiments."""
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


def _table(plan: Plan, evaluations: int) -> str:
    """Return the table of what each stage costs."""
    rows = [
        {
            "method": method,
            "stage": stage,
            "GFLOP a step": f"{plan.costs[method][stage] / 1e9:,.3g}",
            "steps": f"{steps:,}",
            "evaluations": evaluations_of(steps, evaluations) if stage in WITH_END_TASK else "",
            "GFLOP": f"{plan.costs[method][stage] * steps / 1e9:,.3g}",
        }
        for method, stages in plan.steps.items()
        for stage, steps in stages.items()
    ]
    return f"equal cost\n{pd.DataFrame(rows).to_string(index=False)}"


def command() -> None:
    """Run the command line of this process."""
    with quiet_at_closed_pipe():
        sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()
