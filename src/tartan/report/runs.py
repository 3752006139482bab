"""Reads all runs below a folder as plain data: finished, unfinished and failed ones."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pandas as pd
from pydantic import Field

from tartan.errors import UserError, first_line
from tartan.files import Plain, read_bytes, read_json, read_yaml
from tartan.runs.folder import RESULT, command_of, is_running, places_of, stored_options
from tartan.runs.result import Result, read_result
from tartan.runs.sweep import RECORDS

State = Literal["finished", "running", "failed", "stopped", "not begun", "unreadable"]
_LARGEST_LOG = 512 << 20
"""Maximum size of a log that is read: some five million rows [bytes]."""
_Text = Annotated[str, Field(max_length=20_000)]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; options and command are empty where its folder does not tell them."""

    folder: Path
    name: str  # the folder's, relative to the folder of the report
    result: Result
    options: dict[str, Any]  # by dotted name, without those that do not change the training
    command: str
    finished: int  # when its result was written [ns]


@dataclass(frozen=True)
class Job:
    """A run in any state, and why: its folder is empty where it failed before it had one."""

    state: State
    name: str
    command: str
    detail: str = ""


@dataclass
class Folders:
    """The finished runs below a folder, all jobs (failed ones first), and what is damaged."""

    runs: list[Run] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        states = [job.state for job in self.jobs]
        return {state: states.count(state) for state in get_args(State) if state in states}


def find_runs(root: Path) -> Folders:
    """Read every run below `root`; an unreadable run does not stop the others."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs")
    folders, jobs = Folders(), {}
    for folder in _run_folders(root):
        name = folder.relative_to(root).as_posix()
        try:
            if (folder / RESULT).exists():
                run = read_run(folder, name)
                folders.runs.append(run)
                jobs[name] = Job("finished", name, run.command)
            else:
                jobs[name] = _unfinished(folder, name)
        except (UserError, OSError) as error:
            folders.unreadable[name] = str(error)
            jobs[name] = Job("unreadable", name, "", str(error))
    failed: dict[str, Job] = {}
    for record in sorted(root.rglob(f"{RECORDS}/*/[0-9]*.json")):
        name = record.relative_to(root).as_posix()
        if name.count("/.") + name.startswith(".") > 1:
            continue  # of a killed comparison, which leaves a hidden folder
        try:
            report = read_json(record, _Report)
        except (UserError, OSError) as error:
            folders.unreadable[name] = str(error)
            continue
        if report.state == "failed":
            sweep = record.parents[2].relative_to(root)
            job = _failed(report, sweep, jobs)
            if jobs.get(job.name, job).state not in ("finished", "running"):
                failed[report.command] = job
    others = [job for name, job in jobs.items() if name not in {f.name for f in failed.values()}]
    folders.jobs = [*failed.values(), *others]
    return folders


class _Report(Plain):
    """What a job of a sweep reported."""

    state: _Text
    folder: _Text
    command: _Text
    cause: _Text = ""


def _failed(report: _Report, sweep: Path, jobs: Mapping[str, Job]) -> Job:
    """Return a failed job, with its folder; the sweep's may have been moved since, as a whole."""
    inside = [name for name in jobs if Path(name).is_relative_to(sweep)]
    fitting = [n for n in inside if report.folder.endswith(f"/{Path(n).relative_to(sweep)}")]
    return Job("failed", max(fitting, key=len, default=""), report.command, report.cause)


def read_run(folder: Path, name: str) -> Run:
    """Read the finished run in `folder`."""
    result = read_result(folder)
    if not (result.setting_id and result.data_id and result.label):
        raise UserError(f"{RESULT}: no setting_id, data_id or label, as before 0.2; train it again")
    options = stored_options(folder) if (folder / "config.yaml").exists() else {}
    finished = (folder / RESULT).stat().st_mtime_ns
    return Run(folder, name, result, options, read_command(folder), finished)


def read_command(folder: Path) -> str:
    """Return the run's command, from what Hydra stored; empty where there is nothing."""
    path = folder / ".hydra" / "overrides.yaml"
    if not path.is_file():
        return ""
    overrides = read_yaml(path) or []
    if not isinstance(overrides, list) or not all(isinstance(o, str) for o in overrides):
        raise UserError(".hydra/overrides.yaml is not a list of overrides")
    path = path.with_name("hydra.yaml")
    content = read_yaml(path) if path.is_file() else None
    hydra = content.get("hydra") if isinstance(content, dict) else None
    return command_of(overrides, places_of(hydra))


def read_log(path: Path, kinds: Mapping[str, type]) -> pd.DataFrame:
    """Return columns of a log, by their types, without an incomplete last line."""
    content = read_bytes(path, _LARGEST_LOG)
    content = content[: content.rfind(b"\n") + 1]
    try:
        return pd.read_csv(io.BytesIO(content), dtype=dict(kinds), usecols=list(kinds))
    except ValueError as error:
        raise UserError(f"{path.name}: {first_line(error)}") from error


def read_steps(folder: Path, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return a run's step log: stage, step, task, weight, and columns of numbers (`read_log`)."""
    kinds = {"stage": str, "step": float, "task": str, "weight": float}
    return read_log(folder / "steps.csv", kinds | dict.fromkeys(more, float))


def _refuse(error: OSError) -> None:
    raise UserError(f"{error.filename} cannot be listed ({error.strerror})")


def _run_folders(root: Path) -> Iterator[Path]:
    for current, folders, files in os.walk(root, onerror=_refuse):
        if RESULT in files or "config.yaml" in files or ".hydra" in folders:
            folders.clear()
            yield Path(current)
        else:
            folders[:] = sorted(name for name in folders if not name.startswith("."))


def _unfinished(folder: Path, name: str) -> Job:
    """Return a run without a result: running while a process holds its folder, else stopped."""
    begun = (folder / "config.yaml").exists()
    if begun:
        stored_options(folder)  # whoever wrote it: it has to be one of ours
    state: State = "running" if is_running(folder) else "stopped" if begun else "not begun"
    job = Job(state, name, read_command(folder))
    try:
        last = read_log(folder / "steps.csv", {"stage": str, "step": float})[-1:].dropna()
    except UserError:
        return job
    at = "".join(f"{row.stage}, step {row.step:.0f}" for row in last.itertuples())
    return replace(job, detail=at)
