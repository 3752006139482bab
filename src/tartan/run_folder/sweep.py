"""Records the plan of a sweep and the state of its jobs, and prints how to rerun failed ones."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError, printable
from tartan.files import write_text_durably
from tartan.run_folder.lock import is_running
from tartan.run_folder.name import (
    RESULT,
    arguments_of,
    as_given,
    changes_no_training,
    command_of,
    option_of,
    places_of,
)
from tartan.run_folder.run_next import write_run_next
from tartan.run_folder.search_file import check_search_file
from tartan.run_folder.stop import stop

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


class SweepReport(Callback):
    """Prints a table at the end of a sweep; the exit code is 1 if any job failed.

    It is a Hydra callback. Launchers pass it to the processes and machines on which jobs run.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Choose the folder to which the jobs report."""
        try:
            check_search_file(config)
        except UserError as error:
            stop(error)
        jobs = planned_jobs(config)
        _check_apart(jobs or [], config)
        name = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}-{os.getpid()}"
        folder = Path(config.hydra.sweep.dir).absolute() / RECORDS / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if jobs is not None:
                places = places_of(config.hydra)
                plan = {"commands": [command_of(job, places) for job in jobs]}
                write_text_durably(folder / PLAN, json.dumps(plan))
        except (OSError, UserError) as error:
            reason = getattr(error, "strerror", None) or error
            stop(f"cannot write {folder} ({reason}); name a folder: hydra.sweep.dir=FOLDER")
        self._folder = folder
        os.environ[VARIABLE] = str(folder)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Set the environment variable in the job's process, which a cluster may not pass on."""
        if self._folder is not None:
            os.environ[VARIABLE] = str(self._folder)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the table, and keep the record for reports of the runs.

        Raises:
            SystemExit: a job failed; the exit code is 1.
        """
        folder = Path(os.environ.pop(VARIABLE))
        jobs = _jobs_in(folder)
        if not jobs:
            shutil.rmtree(folder)
            stop("this sweep had no jobs: a glob(...) matches nothing")
        (folder / ENDED).touch()
        _remove_earlier(folder)
        for job in jobs:
            # another process may have finished what it ran
            if job["state"] == RUNS_ELSEWHERE and (Path(job["folder"]) / RESULT).is_file():
                job["state"] = "known"
        print_table(jobs)
        if not config.get("evaluate_test", True):
            write_run_next(jobs, Path(config.hydra.sweep.dir), _search_of(config))
        if any(job["state"] not in DONE for job in jobs):
            raise SystemExit(1)


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
    try:
        overrides = OverridesParser.create().parse_overrides(_given(config))
        batches = BasicSweeper.split_arguments(overrides, None)
    except HydraException:  # a glob is resolved by Hydra's own loader of configs alone
        return None
    return [list(job) for batch in batches for job in batch]


def _given(config: DictConfig) -> list[str]:
    """Return the overrides of a sweep, those of its config first."""
    params = config.hydra.sweeper.params or {}
    own = [f"{key}={value}" for key, value in params.items()]
    return own + as_given(config.hydra.overrides.task)


def _search_of(config: DictConfig) -> list[str]:
    """Return the arguments of a search that say what it searches, and from where."""
    own = as_given(config.hydra.overrides.get("hydra", []))
    space = [o for o in own if option_of(o).startswith("hydra.sweeper.params")]
    given = [
        o for o in as_given(config.hydra.overrides.task) if not changes_no_training(option_of(o))
    ]
    return arguments_of([*given, *space], places_of(config.hydra))


def _check_apart(jobs: Sequence[Sequence[str]], config: DictConfig) -> None:
    """Check that no two jobs have the same folder, in which the first would be all of them.

    Raises:
        SystemExit: two have, with the exit code 1: Hydra only warns of a callback's other errors.
    """
    own = config.hydra.overrides.get("hydra", [])
    if any(option_of(override) == "hydra.run.dir" for override in as_given(own)):
        stop("with -m, hydra.run.dir names no folder; hydra.sweep.dir=FOLDER holds all jobs'")
    folders = OmegaConf.to_container(config.hydra.sweep, resolve=False)
    assert isinstance(folders, dict)
    subdir = str(folders.get("subdir", ""))
    if len(jobs) > 1 and subdir and "${" not in subdir:
        stop(
            f"hydra.sweep.subdir={subdir} is one folder for all jobs of the sweep; leave it out, "
            "or name one for each: 'hydra.sweep.subdir=NAME-${seed}'"
        )
    if not subdir.startswith("${run_name:"):
        return
    seen: dict[frozenset[str], tuple[int, Sequence[str]]] = {}
    for number, job in enumerate(jobs):
        named = frozenset(o for o in job if not changes_no_training(option_of(o)))
        first, before = seen.setdefault(named, (number, job))
        if first != number:
            options = sorted({option_of(o) for o in set(job) ^ set(before)})
            if not options:
                stop(f"the sweep has the same job twice: {_repeated(config) or ' '.join(job)}")
            stop(
                f"jobs {first} and {number} of the sweep differ only in {', '.join(options)}, "
                "which is not part of a run's folder; run each alone, with another "
                "hydra.sweep.dir=FOLDER"
            )


def _repeated(config: DictConfig) -> str | None:
    """Return which value of an option a sweep has twice; None where there is none."""
    for override in OverridesParser.create().parse_overrides(_given(config)):
        values = list(override.sweep_string_iterator()) if override.is_sweep_override() else []
        for value in values:
            if values.count(value) > 1:
                name = override.get_key_element()
                return f"{name}={value} is repeated in {override.input_line}; name each value once"
    return None


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
    if VARIABLE not in os.environ:
        return
    entry = {
        "number": number,
        "state": state,
        "folder": str(folder),
        "command": command,
        "cause": cause,
        "at": time.time(),
    }
    write_text_durably(Path(os.environ[VARIABLE]) / f"{number:06d}.json", json.dumps(entry))


def print_table(jobs: Sequence[dict[str, Any]]) -> None:
    """Print a row for each job, then the cause and command of each failed one."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table("job", "state", "folder", title="sweep", title_justify="left", title_style="bold")
    table.columns[0].justify, table.columns[2].overflow = "right", "fold"
    states = {
        "started": "died",
        "known": "finished before",
        "resumed": "finished, resumed",
        RUNS_ELSEWHERE: "runs elsewhere",
    }
    left = []
    for job in jobs:
        running = job["state"] == "started" and is_running(Path(job["folder"]))
        state = "running" if running else states.get(job["state"], job["state"])
        style = "red" if state in ("failed", "died") else ""
        table.add_row(str(job["number"]), Text(state, style=style), Text(_shown(job["folder"])))
        if job["state"] in ("failed", "started", "stopped", RUNS_ELSEWHERE) and not running:
            left.append(job)
    console.print(table)
    for job in left:
        cause = job["cause"] or "its process ended without a word; run it to continue"
        # plain print: a command must not be wrapped, so that it can be copied
        for line in (f"job {job['number']}: {cause}", f"  {job['command']}"):
            console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def _remove_earlier(folder: Path) -> None:
    """Remove the records of finished earlier sweeps with the same plan."""
    plan = folder / PLAN
    for other in folder.parent.glob(f"*/{PLAN}") if plan.is_file() else ():
        same = other.read_bytes() == plan.read_bytes()
        if same and other.parent != folder and (other.parent / ENDED).exists():
            shutil.rmtree(other.parent, ignore_errors=True)


def _shown(folder: str) -> str:
    path = Path(folder)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else folder
