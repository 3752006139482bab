"""A sweep's end: which jobs are finished, which failed and why, and how to run those again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from src.run_folder.name import PROGRAM

VARIABLE = "TARTAN_SWEEP"
"""Environment variable that tells a sweep's jobs, in whatever process, where to report."""


class SweepReport(Callback):
    """Prints a table when a sweep is through; the exit code is 1 if any of its jobs failed."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Choose where the jobs report."""
        name = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}-{os.getpid()}"
        folder = Path(config.hydra.sweep.dir).absolute() / ".sweeps" / name
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[VARIABLE] = str(folder)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the table."""
        folder = Path(os.environ.pop(VARIABLE))
        jobs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*"))]
        shutil.rmtree(folder)
        if not jobs:
            return
        print_table(jobs)
        if any(job["state"] not in ("finished", "resumed", "known") for job in jobs):
            raise SystemExit(1)


def report_job(
    number: int, state: str, folder: Path, overrides: Sequence[str], cause: str = ""
) -> None:
    """Tell the sweep, if there is one, how its job `number` stands.

    Args:
        state: `started`, `finished`, `resumed` (finished, after an earlier start), `known`
            (finished earlier) or `failed`.
        cause: of a failure, one line.
    """
    if VARIABLE not in os.environ:
        return
    entry = {
        "number": number,
        "state": state,
        "folder": str(folder),
        "command": shlex.join([*PROGRAM, *overrides]),
        "cause": cause,
    }
    path = Path(os.environ[VARIABLE]) / f"{number:06d}.json"
    scratch = path.parent.with_name(f"{path.parent.name}-{number}.part")
    scratch.write_text(json.dumps(entry), encoding="utf-8")
    scratch.replace(path)


def print_table(jobs: Sequence[dict[str, Any]]) -> None:
    """One row a job, then the failed ones with their cause and command."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title="sweep", title_justify="left", title_style="bold")
    table.add_column("job", justify="right")
    table.add_column("state")
    table.add_column("folder", overflow="fold")
    states = {"started": "died", "known": "finished before", "resumed": "finished, resumed"}
    for job in jobs:
        state = states.get(job["state"], job["state"])
        style = "red" if state in ("failed", "died") else ""
        table.add_row(str(job["number"]), Text(state, style=style), Text(_shown(job["folder"])))
    console.print(table)
    for job in jobs:
        if job["state"] in ("failed", "started"):
            cause = job["cause"] or "its process ended without a word; the same command goes on"
            # plain print: a command must not be wrapped, so that it can be copied
            for line in (f"job {job['number']}: {cause}", f"  {job['command']}"):
                console.print(line, soft_wrap=True, highlight=False, markup=False)


def _shown(folder: str) -> str:
    path = Path(folder)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else folder
