"""Measures the peak memory of a step, by method and number of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from src.bench.case import OBJECTIVE, Case, build_case
from src.bench.manual_step import ManualStep
from src.core.memory import peak_bytes
from src.core.task_names import END_TASK


@dataclass(frozen=True)
class MemoryRow:
    """The peak memory of a step, without parameters and the optimiser's state.

    Attributes:
        method: name of the method.
        tasks: number of auxiliary tasks.
        peak: peak memory, with gradients and activations [bytes].
        heads: part of it that gradients of the auxiliary tasks' heads take [bytes].
    """

    method: str
    tasks: int
    peak: int
    heads: int


def measure_memory(case: Case, folder: Path, device: torch.device) -> MemoryRow:
    """Take three steps of a case, and measure the peak memory of the third.

    With composed objectives, all three sample the same one, so that cases can be compared.
    """
    built = build_case(case, 3 if case.method != "aang" else 1000, folder)
    by_hand = ManualStep(built, device)
    steps = built.data.steps(built.module.batch_needs, device.type, built.precision)
    sampling, numbers = steps.sampling, range(len(steps))
    chosen = [n for n in numbers if sampling is None or sampling.at(n) == [OBJECTIVE]]
    batches = [built.batch(number, device) for number in chosen[:3]]
    by_hand.all_steps(batches[:2])()
    heads = [head for name, head in by_hand.module.heads.items() if name != END_TASK]
    return MemoryRow(
        method=case.method,
        tasks=0 if case.method == "finetune" else case.tasks,
        peak=peak_bytes(lambda: by_hand.step(batches[0]), device),
        heads=sum(p.numel() * p.element_size() for head in heads for p in head.parameters()),
    )
