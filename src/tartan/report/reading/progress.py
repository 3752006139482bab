"""Tells how a sweep stands: finished, running, failed and missing jobs, and the time left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, get_args

from pydantic import Field, FiniteFloat

from tartan.errors import UserError
from tartan.files import Plain, read_json
from tartan.report.reading.run import Run
from tartan.report.reading.search import Found, Job, State, Unreadable
from tartan.run_folder.sweep import ENDED, PLAN, RECORDS


class _Plan(Plain):
    commands: Annotated[list[Annotated[str, Field(max_length=20_000)]], Field(max_length=100_000)]


class _Report(Plain):
    number: Annotated[int, Field(ge=0)]
    state: Annotated[str, Field(max_length=20)]
    folder: Annotated[str, Field(max_length=4096)]
    command: Annotated[str, Field(max_length=20_000)]
    cause: Annotated[str, Field(max_length=20_000)] = ""
    at: FiniteFloat = 0.0


@dataclass(frozen=True)
class Progress:
    """All jobs, and the expected time until they are finished.

    Attributes:
        seconds_left: expected time left [s]; None if no job is left, or none has finished yet.
        unreadable: records of sweeps that could not be read, with their reasons.
    """

    jobs: tuple[Job, ...]
    seconds_left: float | None
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def counts(self) -> dict[State, int]:
        """Number of jobs by state, without states that have none."""
        states = [job.state for job in self.jobs]
        return {state: states.count(state) for state in get_args(State) if state in states}

    @property
    def is_over(self) -> bool:
        """Whether every job is finished."""
        return set(self.counts) <= {"finished"}


def progress_of(found: Found) -> Progress:
    """Return the state of the runs below a folder: those of sweeps first, then the others."""
    runs = {run.name: run for run in found.runs}
    others = {job.name: job for job in found.unfinished}
    others |= {u.name: Job("unreadable", u.name, "", u.reason) for u in found.unreadable}
    folders = {name: found.root / name for name in (*runs, *others)}
    jobs: dict[str, Job] = {}
    unreadable: list[Unreadable] = []
    for record in sorted(found.root.rglob(f"{RECORDS}/*")):
        hidden = [part for part in record.relative_to(found.root).parts if part.startswith(".")]
        if not record.is_dir() or hidden != [RECORDS]:
            continue  # a comparison's pilot that was killed has left a hidden folder
        try:
            sweep = record.parents[1]
            below = {n: f for n, f in folders.items() if f.is_relative_to(sweep)}
            names = {f.relative_to(sweep).as_posix(): n for n, f in below.items()}
            later = _jobs_of(record, names, runs, others)
            # a sweep that was interrupted before a job has only its plan for it
            jobs |= {c: job for c, job in later.items() if job.name or c not in jobs}
        except UserError as error:
            name = record.relative_to(found.root).as_posix()
            unreadable.append(Unreadable(name, str(error)))
    told = {job.name for job in jobs.values()}
    alone = [Job("finished", run.name, run.command or "") for run in found.runs]
    alone += others.values()
    everything = (*jobs.values(), *(job for job in alone if job.name not in told))
    left = seconds_left(everything, found.runs, found.at)
    return Progress(everything, left, tuple(unreadable))


def seconds_left(jobs: Sequence[Job], runs: Sequence[Run], now: float) -> float | None:
    """Return the expected time until all running and missing jobs are finished [s].

    A job is expected to take the mean time of finished jobs whose commands differ only in the seed,
    or else of all finished jobs. Missing jobs are shared by as many processes as are running now.
    Loading of data and models is not counted.

    Args:
        jobs: all jobs.
        runs: the finished runs.
        now: the present time, in seconds since the epoch.
    """
    waiting = [job for job in jobs if job.state in ("missing", "not begun")]
    running = [job for job in jobs if job.state == "running"]
    if not runs or not (waiting or running):
        return None
    of_kind: dict[str, list[float]] = {}
    for run in runs:
        of_kind.setdefault(_without_seed(run.command or ""), []).append(run.result.seconds)
    usual = fmean(run.result.seconds for run in runs)

    def expected(job: Job) -> float:
        known = of_kind.get(_without_seed(job.command)) if job.command else None
        return fmean(known) if known else usual

    left = sum(expected(job) for job in waiting)
    for job in running:
        left += max(0.0, expected(job) - (now - job.began if job.began else 0.0))
    return left / max(1, len(running))


def _jobs_of(
    record: Path,
    names: Mapping[str, str],
    runs: Mapping[str, Run],
    others: Mapping[str, Job],
) -> dict[str, Job]:
    """Return a sweep's jobs by command; later reports of a job replace earlier ones.

    Args:
        record: the sweep's record.
        names: runs' names in the report by their names in the sweep's folder.
        runs: finished runs by name.
        others: other runs by name.
    """
    plan = record / PLAN
    commands = read_json(plan, _Plan).commands if plan.is_file() else []
    jobs = {command: Job("missing", "", command) for command in commands}
    for path in sorted(record.glob("[0-9]*.json")):
        report = read_json(path, _Report)
        # the sweep's folder may have been moved since, as a whole
        fitting = [below for below in names if report.folder.endswith(f"/{below}")]
        name = names[max(fitting, key=len)] if fitting else ""
        jobs[report.command] = _job(report, name, runs, others, (record / ENDED).exists())
    return jobs


def _job(
    report: _Report,
    name: str,
    runs: Mapping[str, Run],
    others: Mapping[str, Job],
    ended: bool,
) -> Job:
    if name in runs:
        return Job("finished", name, report.command)
    other = others.get(name)
    if report.state == "failed" and (other is None or other.state != "running"):
        return Job("failed", name, report.command, report.cause)
    if other is None:
        if report.state == "started" and not ended:
            return Job("not begun", name, report.command, began=report.at)
        return Job("missing", name, report.command)
    return replace(other, command=report.command, began=report.at or other.began)


def _without_seed(command: str) -> str:
    return re.sub(r"(?<!\S)seed=\S+", "", command)
