"""Waits of a step for a GPU: what is queued there should never run dry."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from src.bench.by_hand import OurStep
from src.bench.case import Case, built_case


@dataclass(frozen=True)
class WaitsRow:
    """Places in one step at which the host waited for the device.

    Attributes:
        places: `file:line` of each wait.
    """

    method: str
    tasks: int
    places: list[str]


def measure_waits(case: Case, folder: Path, device: torch.device) -> WaitsRow:
    """Let torch warn of every wait in a case's third step, whose batch is on the device."""
    built = built_case(case, 3, folder)
    ours, batches = OurStep(built, device), built.batches(device)
    ours.all_steps(batches[:2])()
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours.step(batches[2])
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    places = [f"{w.filename}:{w.lineno}" for w in caught if "synchron" in str(w.message)]
    return WaitsRow(case.method, 0 if case.method == "finetune" else case.tasks, places)
