"""Runs in several processes, started the way a user starts them."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tartan.methods.checkpoint import points
from tartan.runs.command import FOLDER, STARTER
from tests.programs import PYTHONPATH

PROGRAM = [sys.executable, "-m", "src.run"]
ENDS_WITHIN_S = 60
"""Seconds in which all processes have to be gone when one was killed."""


def started(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE", "NODE_RANK", FOLDER, STARTER):
        environment.pop(name, None)
    return subprocess.Popen(
        list(command), cwd=folder, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def finished(command: Sequence[str], folder: Path, timeout: float = 240) -> tuple[int, str]:
    """Exit code and output of a run that nobody disturbs."""
    process = started(command, folder)
    output, _ = process.communicate(timeout=timeout)
    return process.returncode, output


def weights_of(run: Path, stage: str) -> dict[str, torch.Tensor]:
    """What a stage ended with."""
    folder = run / "checkpoints" / stage
    path = folder / "best.ckpt"
    path = path if path.exists() else folder / "last.ckpt"
    state: dict[str, torch.Tensor] = torch.load(path, weights_only=True)["state_dict"]
    return state


def difference(left: Path, right: Path, stage: str) -> float:
    """The largest between parameters of two runs, and between the task weights of their steps."""
    one, other = weights_of(left, stage), weights_of(right, stage)
    assert one.keys() == other.keys()
    parameters = max(
        float((one[name].double() - other[name].double()).abs().max())
        for name in one
        if one[name].numel() and not name.endswith("_extra_state")  # pickled bytes
    )
    logs = [list(csv.DictReader((run / "steps.csv").open())) for run in (left, right)]
    assert len(logs[0]) == len(logs[1]) > 0
    weights = max(abs(float(a["weight"]) - float(b["weight"])) for a, b in zip(*logs, strict=True))
    return max(parameters, weights)


def children_of(pid: int) -> list[int]:
    """Processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def wait_for_point(run: Path, stage: str, step: int) -> None:
    """Wait until a run has taken a point to go on from at `step` or later."""
    folder, until = run / "checkpoints" / stage / "resume", time.monotonic() + 120
    while not any(int(point.stem) >= step for point in points(folder)):
        assert time.monotonic() < until, "no point was taken"
        time.sleep(0.05)


def disturbed(
    command: Sequence[str], folder: Path, run: Path, disturb: Callable[[int], None]
) -> tuple[int, str]:
    """Exit code and output of a run to which `disturb(pid)` happens after its third step.

    Fails if it is not over, with all of its processes, soon after.
    """
    process = started(command, folder)
    try:
        wait_for_point(run, "joint", 3)
        disturb(process.pid)
        output, _ = process.communicate(timeout=ENDS_WITHIN_S)
        until = time.monotonic() + ENDS_WITHIN_S
        while _members(process.pid):
            assert time.monotonic() < until, "a process of the run is still there"
            time.sleep(0.2)
    finally:
        if _members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def _members(group: int) -> list[int]:
    """Processes of a process group that are not over."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group_id = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(group_id) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found
