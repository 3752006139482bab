"""Measures the time from the command to the first step, with and without a filled cache."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.row import Row
from tartan.errors import UserError
from tartan.methods.fit import STEP_LOG
from tartan.run_folder.result import read_result
from tartan.settings import quoted

TIMEOUT_S = 1800
"""Time after which a run of one step has failed [s]."""


@dataclass(frozen=True)
class StartUp(Row):
    """The time of a start.

    Attributes:
        what: name of the start.
        seconds_to_first_step: time from the command to the end of that step [s].
        seconds_to_end: time to the end of the process, which evaluates on dev and test [s].
        texts_per_second: number of auxiliary texts, divided by the time that the start takes longer
            than one that finds all of them in the cache; None for that one.
    """

    title = "time from the command"
    what: str
    seconds_to_first_step: float
    seconds_to_end: float
    texts_per_second: float | None


def measure_starts(overrides: Sequence[str], folder: Path) -> list[StartUp]:
    """Run the command line for one step, twice.

    Args:
        overrides: overrides of the run's config, with an empty `cache_dir`.
        folder: a folder for the runs.

    Raises:
        UserError: a run failed; the message holds its last line.
    """
    first, to_end = _measure(overrides, folder / "first")
    cached, cached_to_end = _measure(overrides, folder / "cached")
    auxiliaries = read_result(folder / "first").auxiliaries.values()
    texts = sum(auxiliary.examples for auxiliary in auxiliaries)
    rate = texts / (first - cached) if first > cached else None
    return [
        StartUp("whole corpus, first start", first, to_end, rate),
        StartUp("whole corpus, from cache", cached, cached_to_end, None),
    ]


def _measure(overrides: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return the times to the first step and to the end of a run [s]."""
    place = f"hydra.run.dir={quoted(folder)}"
    command = [sys.executable, "-m", "tartan", "run", *overrides, "max_steps=1", place]
    began = time.time()
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["?"]
        raise UserError(f"a run failed: {said[-1]}") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"a run has not ended after {TIMEOUT_S} s") from error
    ended = time.time()
    # the log is written after the step
    return (folder / STEP_LOG).stat().st_mtime - began, ended - began
