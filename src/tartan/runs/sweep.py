"""Records the plan of a sweep and the state of its jobs, and prints how to go on after it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from omegaconf.errors import InterpolationResolutionError

from tartan.errors import UserError, printable
from tartan.files import check_written_folder, write_text_durably
from tartan.runs.command_line import program, stop
from tartan.runs.folder import is_running
from tartan.runs.name import RESULT, as_given, command_of, option_of, places_of

VARIABLE = "TARTAN_SWEEP"
"""Environment variable that tells a sweep's jobs, in any process, where to report."""
RECORDS = ".sweeps"
"""Folder below the runs' folder that holds one folder for each sweep."""
PLAN = "plan.json"
"""File with the commands of all jobs, in order."""
ENDED = "ended"
"""File that is written when a sweep ends."""
DONE = ("finished", "resumed", "known")
"""States of jobs that have a result."""
RUNS_ELSEWHERE = "elsewhere"
"""State of a job that another process was already running."""
RUN_NEXT = "run_next.txt"
"""File in a search's folder with the command to run next."""
_OF_THE_SEARCH = ("evaluate_test", "search", "seed", "resume", "hydra.sweep.dir")
"""Options of a search's jobs that are not part of the settings that it compares."""
_SHOWN = {
    "started": "died",
    "known": "finished before",
    "resumed": "finished, resumed",
    RUNS_ELSEWHERE: "runs elsewhere",
}


class RunCallback(Callback):
    """Checks the folder that Hydra writes to; prints a table at the end of a sweep.

    The exit code of a sweep is 1 if any job failed. It is a Hydra callback, of whose exceptions
    Hydra only warns. Launchers pass it to the processes and machines on which jobs run.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the run's folder before Hydra writes its own files and log there."""
        if config.hydra.output_subdir is not None:  # else nothing is written there, as by check
            HydraConfig.instance().set_config(config)  # which the folder's name refers to
            with suppress(InterpolationResolutionError):  # which Hydra reports in a moment
                _check_folder(config, Path(config.hydra.run.dir))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Choose the folder to which the jobs report, and write the plan."""
        _check_folder(config, Path(config.hydra.sweep.dir))
        overrides = as_given(config.hydra.overrides.get("hydra", []))
        if any(option_of(override) == "hydra.run.dir" for override in overrides):
            stop("with -m, hydra.run.dir names no folder; hydra.sweep.dir=FOLDER holds all jobs'")
        name = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}-{os.getpid()}"
        folder = Path(config.hydra.sweep.dir).absolute() / RECORDS / name
        jobs, places = planned_jobs(config), places_of(config.hydra)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if jobs is not None:
                plan = {"commands": [command_of(job, places) for job in jobs]}
                write_text_durably(folder / PLAN, json.dumps(plan))
        except OSError as error:
            stop(f"cannot write {folder} ({error.strerror}); name one: hydra.sweep.dir=FOLDER")
        self._folder = folder
        os.environ[VARIABLE] = str(folder)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Set the environment variable in the job's process, which a cluster may not pass on."""
        if self._folder is not None:
            os.environ[VARIABLE] = str(self._folder)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the table, and keep the record for reports; exit with 1 if a job failed."""
        folder = Path(os.environ.pop(VARIABLE))
        jobs = _jobs_in(folder)
        if not jobs:
            shutil.rmtree(folder)
            stop("this sweep had no jobs: a glob(...) matches nothing")
        (folder / ENDED).touch()
        for job in jobs:
            # another process may have finished what it ran
            if job["state"] == RUNS_ELSEWHERE and (Path(job["folder"]) / RESULT).is_file():
                job["state"] = "known"
        print_table(jobs)
        if not config.get("evaluate_test", True):
            write_run_next(jobs, Path(config.hydra.sweep.dir))
        if any(job["state"] not in DONE for job in jobs):
            raise SystemExit(1)


def _check_folder(config: DictConfig, folder: Path) -> None:
    """End the command where Hydra would write through a link, or read paths from elsewhere."""
    if config.hydra.job.chdir:
        stop("hydra.job.chdir=true would read relative paths from the run's folder; leave it out")
    try:
        check_written_folder(folder)
    except UserError as error:
        stop(error)


@contextmanager
def report_interrupted_sweep() -> Iterator[None]:
    """Print the table also where a signal or the launcher ends a sweep early.

    The record stays that of an unfinished sweep: on a cluster, its jobs may still run.
    """
    try:
        yield
    finally:
        folder = os.environ.get(VARIABLE, "")
        # not that of a sweep of which this process is a job
        jobs = _jobs_in(Path(folder)) if folder.endswith(f"-{os.getpid()}") else []
        if jobs:
            del os.environ[VARIABLE]
            print_table(jobs)
            print("the sweep has not ended; the same command runs what is missing", file=sys.stderr)


def _jobs_in(folder: Path) -> list[dict[str, Any]]:
    paths = sorted(folder.glob("[0-9]*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def planned_jobs(config: DictConfig) -> list[list[str]] | None:
    """Return the overrides of a sweep's jobs, in order; None if not known before (Optuna, globs).

    Args:
        config: the sweep's config, with `hydra`.
    """
    sweeper = config.hydra.sweeper
    if sweeper._target_ != f"{BasicSweeper.__module__}.{BasicSweeper.__name__}":
        return None
    params = [f"{key}={value}" for key, value in (sweeper.params or {}).items()]
    try:
        parser = OverridesParser.create()
        overrides = parser.parse_overrides(params + as_given(config.hydra.overrides.task))
        batches = BasicSweeper.split_arguments(overrides, None)
    except HydraException:  # a glob is resolved by Hydra's own loader of configs alone
        return None
    return [list(job) for batch in batches for job in batch]


def report_job(number: int, state: str, folder: Path, command: str, cause: str = "") -> None:
    """Report the state of job `number` to the sweep, if there is one.

    Args:
        number: the job's number.
        state: `started`, `finished`, `resumed` (finished, after an earlier start), `known`
            (finished earlier), `elsewhere` (another process runs it), `failed` or `stopped`.
        folder: the run folder.
        command: the command that runs the job alone.
        cause: why it failed, in one line.
    """
    if VARIABLE in os.environ:
        entry = {"number": number, "state": state, "folder": str(folder), "command": command}
        entry |= {"cause": cause, "at": time.time()}
        write_text_durably(Path(os.environ[VARIABLE]) / f"{number:06d}.json", json.dumps(entry))


def print_table(jobs: Sequence[dict[str, Any]]) -> None:
    """Print a row for each job, then the cause and command of each failed one."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    columns = (Column("job", justify="right"), "state", Column("folder", overflow="fold"))
    table = Table(*columns, title="sweep", title_justify="left", title_style="bold")
    left = []
    for job in jobs:
        folder = Path(job["folder"])
        running = job["state"] == "started" and is_running(folder)
        state = "running" if running else _SHOWN.get(job["state"], job["state"])
        shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
        style = "red" if state in ("failed", "died") else ""
        table.add_row(str(job["number"]), Text(state, style=style), Text(str(shown)))
        if job["state"] not in DONE and not running:
            left.append(job)
    console.print(table)
    for job in left:
        cause = job["cause"] or "its process ended without a word; run it to continue"
        for line in (f"job {job['number']}: {cause}", f"  {job['command']}"):
            # a command must not be wrapped, so that it can be copied
            console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def write_run_next(jobs: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write and print the command with the settings that did best on dev.

    Jobs that differ only in their seed count by their mean; of equal settings the first is taken.
    Nothing is written where no job is finished.

    Args:
        jobs: the records of the search's jobs.
        folder: the search's folder.
    """
    from tartan.runs.result import Result, read_result  # it takes time that --help has not

    results: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for job in jobs:
        if (Path(job["folder"]) / RESULT).is_file():
            result = read_result(Path(job["folder"]), finite=False)
            results[_settings(job["command"])].append(result)
    if not results:
        return
    ranked = sorted(results, key=lambda settings: -fmean(r.merit for r in results[settings]))
    means = {settings: fmean(r.dev_score for r in results[settings]) for settings in ranked}
    best = ranked[0]
    command = shlex.join([*program(), "-m", *best, "seed=0,1,2"])
    lines = [
        f"# dev {means[best]:.4f}, the best of {len(ranked)} settings; not evaluated on test yet",
        command,
        "",
        *(f"# {means[settings]:.4f}  {' '.join(settings)}" for settings in ranked),
    ]
    write_text_durably(folder / RUN_NEXT, "\n".join(lines) + "\n")
    print(f"best on dev: {means[best]:.4f}; run this next ({folder / RUN_NEXT}):\n  {command}")


def _settings(command: str) -> tuple[str, ...]:
    """Return a job's overrides without those of the search itself."""
    arguments = shlex.split(re.sub(r"^(tartan run|python -m src\.run) ?", "", command))
    return tuple(o for o in arguments if option_of(o) not in _OF_THE_SEARCH)
