"""Records the state of a sweep's jobs, and prints how to go on after it."""

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from omegaconf.errors import InterpolationResolutionError

from tartan.errors import UserError, printable
from tartan.files import check_written_folder, write_text_durably
from tartan.runs.command_line import stop
from tartan.runs.folder import RESULT, as_given, option_of

VARIABLE = "TARTAN_SWEEP"
"""Environment variable that tells a sweep's jobs, in any process, where to report."""
RECORDS = ".sweeps"
"""Folder below the runs' folder that holds one folder for each sweep."""


class RunCallback(Callback):
    """Checks the folder that Hydra writes to; prints a table at the end of a sweep.

    It ends the process where something is wrong: of a callback's exceptions Hydra only warns.
    Launchers pass it to the processes and machines on which jobs run.
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
        folder = Path(config.hydra.sweep.dir).absolute()
        _check_folder(config, folder)
        if any(option_of(one) == "hydra.run.dir" for one in as_given(config.hydra.overrides.hydra)):
            stop("with -m, hydra.run.dir names no folder; hydra.sweep.dir=FOLDER holds all jobs'")
        self._folder = folder / RECORDS / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}-{os.getpid()}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            stop(f"{error.filename}: {error.strerror}; name a folder: hydra.sweep.dir=FOLDER")
        os.environ[VARIABLE] = str(self._folder)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Set the environment variable in the job's process, which a cluster may not pass on."""
        if self._folder is not None:
            os.environ[VARIABLE] = str(self._folder)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the table; exit with 1 if a job failed."""
        folder = Path(os.environ.pop(VARIABLE))
        jobs = [json.loads(path.read_bytes()) for path in sorted(folder.glob("[0-9]*.json"))]
        if not jobs:
            shutil.rmtree(folder)
            stop("this sweep had no jobs: a glob(...) matches nothing")
        for job in jobs:  # another process may have finished meanwhile what it ran
            if job["state"] == "runs elsewhere" and (Path(job["folder"]) / RESULT).is_file():
                job["state"] = "finished before"
        left = [job for job in jobs if not job["state"].startswith("finished")]
        print_table(jobs, left)
        if left:
            raise SystemExit(1)


def _check_folder(config: DictConfig, folder: Path) -> None:
    """End the command where Hydra would write through a link, or read paths from elsewhere."""
    if config.hydra.job.chdir:
        stop("hydra.job.chdir=true would read relative paths from the run's folder; leave it out")
    try:
        check_written_folder(folder)
    except UserError as error:
        stop(error)


def report_job(
    number: int, state: str, folder: Path, command: str, cause: str = "", dev: float | None = None
) -> None:
    """Report the state of job `number`, and its metric on dev, to the sweep, if there is one."""
    if VARIABLE in os.environ:
        entry = {"number": number, "state": state, "folder": str(folder), "command": command}
        path = Path(os.environ[VARIABLE]) / f"{number:06d}.json"
        write_text_durably(path, json.dumps(entry | {"cause": cause, "dev": dev}))


def print_table(jobs: Sequence[dict[str, Any]], left: Sequence[dict[str, Any]]) -> None:
    """Print a row for each job, then the cause and command of each one that is `left`."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    columns = (Column("job", justify="right"), "state", "dev", Column("folder", overflow="fold"))
    table = Table(*columns, title="sweep", title_justify="left", title_style="bold")
    for job in jobs:
        state = "died" if job in left and job["state"] == "started" else job["state"]
        dev = "-" if job["dev"] is None else f"{job['dev']:.4f}"
        table.add_row(str(job["number"]), state, dev, Text(os.path.relpath(job["folder"])))
    console.print(table)
    for job in left:
        cause = job["cause"] or "its process ended without a word; run it to continue"
        # not wrapped, so that it can be copied
        print(printable(f"job {job['number']}: {cause}\n  {job['command']}"))
