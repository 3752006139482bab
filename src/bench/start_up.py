"""Measures the time from the command to the first step, with and without a filled cache."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from src.configuration.quoting import quoted_path
from src.errors import UserError
from src.run_folder.result import read_result

TIMEOUT_S = 1800
"""Time after which a run of one step has failed [s]."""


@dataclass(frozen=True)
class StartUp:
    """The time of a start.

    Attributes:
        what: name of the start.
        seconds: time from the command to the end of the first step [s].
        seconds_to_end: time to the end of the process, which evaluates on dev and test [s].
        lines: number of texts of all auxiliary tasks.
    """

    what: str
    seconds: float
    seconds_to_end: float
    lines: int


def measure_start(what: str, overrides: Sequence[str], folder: Path) -> StartUp:
    """Run the command line for one step.

    Args:
        what: name of the start.
        overrides: overrides of the run's config.
        folder: the run folder.

    Raises:
        UserError: the run failed; the message holds its last line.
    """
    began = time.perf_counter()
    place = f"hydra.run.dir={quoted_path(folder)}"
    command = [sys.executable, "-m", "src.run", *overrides, "max_steps=1", place]
    first = None
    log = folder / "steps.csv"
    # a file, because a run that fills a pipe would wait for its reader
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            if first is None and log.exists() and log.stat().st_size:
                first = time.perf_counter() - began
            if time.perf_counter() - began > TIMEOUT_S:
                process.kill()
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        errors.seek(0)
        said = errors.read().strip().splitlines() or ["?"]
    if process.returncode != 0 or first is None:
        raise UserError(f"the run of {what} failed: {said[-1]}")
    result = read_result(folder)
    lines = sum(auxiliary.examples for auxiliary in result.auxiliaries.values())
    return StartUp(what, first, seconds, lines)
