"""Measures steps of this program: without an optimisation, their memory, their waits for a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.case import BuiltCase, Case, build_case
from benchmarks.measure import Row, ratio, time_interleaved
from tartan.core.task import StepBatch
from tartan.kernels.dropout import replace_dropout


@dataclass(frozen=True)
class Ablation:
    """An optimisation, and how to do without it.

    Attributes:
        name: its name.
        base: overrides of both cases.
        without: overrides that turn it off.
        turn_off: turns it off in a case that has been built, where overrides cannot.
    """

    name: str
    base: Sequence[str] = ()
    without: Sequence[str] = ()
    turn_off: Callable[[BuiltCase], None] = lambda case: None


def _use_torch_attention(case: BuiltCase) -> None:
    body: Any = case.module.body
    body.set_attn_implementation("sdpa")


ABLATIONS = (
    Ablation("packed texts", without=["packed=false"]),
    Ablation(
        "16 random bits an element for dropout",
        turn_off=lambda case: replace_dropout(case.module, nn.Dropout),
    ),
    Ablation("attention with the same dropout, in place", ["packed=false"],
             turn_off=_use_torch_attention),
)  # fmt: skip


def measure_ablation(
    ablation: Ablation, case: Case, rounds: int, folder: Path, device: torch.device
) -> Row:
    """Time three steps without an optimisation and with it, in turn, on the same batches."""
    parts = {}
    for name, more in (("with", ()), ("without", ablation.without)):
        built = build_case(case, 3, folder / name, device, *ablation.base, *more)
        if name == "without":
            ablation.turn_off(built)
        parts[name] = partial(_steps, built.stepper(), built.batches())
    times = time_interleaved(parts, rounds, device)
    return Row(
        "ablations", f"without {ablation.name}", str(case), ratio(times["without"], times["with"])
    )


def _steps(step: Callable[[StepBatch], None], batches: Sequence[StepBatch]) -> None:
    for batch in batches:
        step(batch)


def measure_memory(case: Case, folder: Path, device: torch.device) -> Row:
    """Measure the peak memory of a case's third step, on the batch of its first."""
    built = build_case(case, 2, folder, device)
    step, batches = built.stepper(), built.batches()
    _steps(step, batches)
    peak = peak_bytes(partial(step, batches[0]), device)
    return Row("memory", "peak of a step", str(case), peak_mib=peak / 2**20)


def measure_waits(case: Case, folder: Path, device: torch.device) -> Row:
    """List torch's warnings of waits in a case's third step, whose batch is on the GPU."""
    built = build_case(case, 3, folder, device)
    step, batches = built.stepper(), built.batches()
    _steps(step, batches[:2])
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step(batches[2])
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    places = [f"{Path(w.filename).name}:{w.lineno}" for w in caught if "synchron" in str(w.message)]
    waits = f"{len(places)} {' '.join(sorted(set(places)))}"
    return Row("waits", "of the host for the GPU in a step", str(case), waits=waits)


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Return the peak of tensors that `run` allocates, beyond those there before it [bytes]."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    held = peak = 0
    for event in profiler.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
