"""Measures the peak memory of a step, by method and number of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from benchmarks.case import Case, build_case
from benchmarks.manual_step import ManualStep
from benchmarks.row import Row
from tartan.core.task import StepBatch
from tartan.core.task_names import END_TASK
from tartan.methods.measuring import parameter_bytes, peak_bytes

BATCHES = 2
"""Number of batches; the step that is measured takes the first one again."""


@dataclass(frozen=True)
class MemoryRow(Row):
    """The peak memory of a step, without parameters and the optimiser's state.

    Attributes:
        method: name of the method.
        tasks: number of auxiliary tasks.
        peak_mib: peak memory, with gradients and activations [MiB].
        heads_mib: part of it that gradients of the auxiliary tasks' heads take [MiB].
        percent_a_task: growth of the rest of the peak with each further task, compared with the
            method's first row [%].
    """

    title = "peak memory of a step"
    method: str
    tasks: int
    peak_mib: float
    heads_mib: float
    percent_a_task: float | None = None


def measure_memory(cases: Sequence[Case], folder: Path, device: torch.device) -> list[MemoryRow]:
    """Measure the peak memory of a step of each case, the third, on the batch of the first.

    Args:
        cases: the cases; all take their steps on the first one's batches, because a step's memory
            also depends on how many tokens its batch has, and how many of them are masked.
        folder: the folder of the runs, which is emptied.
        device: the device.
    """
    rows: list[MemoryRow] = []
    batches: list[StepBatch] = []
    for case in cases:
        built = build_case(case, BATCHES, folder)
        batches = batches or built.batches(device)
        by_hand = ManualStep(built, device)
        by_hand.steps(batches)
        heads = [head for name, head in by_hand.module.heads.items() if name != END_TASK]
        rows.append(
            MemoryRow(
                method=case.method,
                tasks=case.tasks,
                peak_mib=peak_bytes(partial(by_hand.step, batches[0]), device) / 2**20,
                heads_mib=sum(map(parameter_bytes, heads)) / 2**20,
            )
        )
    return rows


def with_growth(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Return the rows with the growth of each method's peak."""
    firsts: dict[str, MemoryRow] = {}
    grown = []
    for row in rows:
        first = firsts.setdefault(row.method, row)
        added = (row.peak_mib - row.heads_mib) - (first.peak_mib - first.heads_mib)
        if row.tasks > first.tasks:
            share = added / (row.tasks - first.tasks) / first.peak_mib
            row = replace(row, percent_a_task=100 * share)
        grown.append(row)
    return grown
