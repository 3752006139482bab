"""Finds where the host waits for the GPU in a step, while it could queue further kernels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.case import Case, build_case
from benchmarks.manual_step import ManualStep
from benchmarks.row import Row


@dataclass(frozen=True)
class WaitsRow(Row):
    """The lines at which the host waited for the GPU in one step.

    Attributes:
        method: name of the method.
        tasks: number of auxiliary tasks.
        waits: number of waits.
        lines: `file:line` of each place of these.
    """

    title = "waits for the GPU in a step"
    method: str
    tasks: int
    waits: int
    lines: list[str]


def measure_waits(case: Case, folder: Path, device: torch.device) -> WaitsRow:
    """Collect torch's warnings of waits in a case's third step, whose batch is on the device."""
    built = build_case(case, 3, folder)
    by_hand, batches = ManualStep(built, device), built.batches(device)
    by_hand.steps(batches[:2])
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            by_hand.step(batches[2])
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    places = [f"{w.filename}:{w.lineno}" for w in caught if "synchron" in str(w.message)]
    return WaitsRow(case.method, case.tasks, len(places), sorted(set(places)))
