"""Peak memory of a step: against the other methods, and against the number of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from src.bench.by_hand import OurStep
from src.bench.case import OBJECTIVE, Case, built_case
from src.core.memory import peak_bytes
from src.core.task_names import END_TASK


@dataclass(frozen=True)
class MemoryRow:
    """The most memory that one step holds beyond parameters and the optimiser's state.

    Attributes:
        peak: in bytes, gradients and activations included.
        heads: bytes of the gradients of the auxiliary tasks' heads, a part of it.
    """

    method: str
    tasks: int
    peak: int
    heads: int


def measure_memory(case: Case, folder: Path, device: torch.device) -> MemoryRow:
    """Take three steps of a case; the third's peak counts.

    Of composed objectives the same one is sampled in each, however many there are.
    """
    built = built_case(case, 3 if case.method != "aang" else 1000, folder)
    ours = OurStep(built, device)
    steps = built.data.steps(built.module.batch_needs, device.type, built.precision)
    sampling, numbers = steps.sampling, range(len(steps))
    fitting = [n for n in numbers if sampling is None or sampling.at(n) == [OBJECTIVE]]
    batches = [built.batch(number, device) for number in fitting[:3]]
    ours.all_steps(batches[:2])()
    heads = [head for name, head in ours.module.heads.items() if name != END_TASK]
    return MemoryRow(
        method=case.method,
        tasks=0 if case.method == "finetune" else case.tasks,
        peak=peak_bytes(lambda: ours.step(batches[0]), device),
        heads=sum(p.numel() * p.element_size() for head in heads for p in head.parameters()),
    )
