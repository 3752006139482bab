"""Measures steps: against their floor, without an optimisation, their memory, their waits."""

from __future__ import annotations

import copy
import gc
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.case import STAGE_OF, BuiltCase, Case, build_case, loss_of
from benchmarks.measure import Row, ratio, time_interleaved
from tartan.core.task import Batch, StepBatch
from tartan.kernels.dropout import replace_dropout
from tartan.methods.cost import now
from tartan.methods.module import TaskMixing
from tartan.runs.run import fit_stage


class Floor:
    """Takes the floor of a module's steps, on copies of its body and heads.

    It is a separate forward and backward pass of each of a step's batches, with the run's
    micro-batches, precision and kernels, and one optimiser step: `n + 1` passes for MT-TARTAN with
    `n` auxiliary tasks, `n + 2` for META-TARTAN.
    """

    def __init__(self, module: TaskMixing) -> None:
        meta_head = None if module.meta_head is None else module.meta_head.head
        heads = [task.head for task in module.tasks]
        self.body, self._heads, self._meta = copy.deepcopy((module.body, heads, meta_head))
        for copied in (self.body, *self._heads, *([] if self._meta is None else [self._meta])):
            _remove_hooks(copied)  # with which the run counts the cost of its passes
        self._tasks = [(task.name, task.objective) for task in module.tasks]
        end, others = (None, self._heads)
        if module.end_task is not None:
            end, others = self._heads[0], self._heads[1:]
        self._optimiser = module.optimisation.optimiser(self.body, end, others)

    def step(self, batch: StepBatch) -> None:
        """Take the passes of a step's batches and one optimiser step."""
        for (name, objective), head in zip(self._tasks, self._heads, strict=True):
            self._pass(objective, head, batch.tasks[name])
        if batch.meta_batch is not None and self._meta is not None:
            self._pass(self._tasks[0][1], self._meta, batch.meta_batch)
        self._optimiser.step()

    def _pass(self, objective: Any, head: nn.Module, batch: Batch) -> None:
        for parameter in self.body.parameters():
            parameter.grad = None
        for part in batch.micro_batches:
            loss = loss_of(objective, self.body, head, part)
            with torch.autocast(loss.device.type, enabled=False):
                (loss / batch.units).backward()  # type: ignore[no-untyped-call]


def _remove_hooks(module: nn.Module) -> None:
    for part in module.modules():
        part._forward_hooks.clear()
        part._forward_pre_hooks.clear()


class FloorProbe(pl.Callback):
    """Times each step of a run, and after it the floor on the same batches [s].

    The floor is also taken before the step, untimed, because the first pass of a batch builds
    kernels for its shapes. A step's time is all the time between two floors, with fetching the
    batch, logging and callbacks.
    """

    def __init__(self, warm_up: int) -> None:
        self.steps: list[float] = []
        self.floors: list[float] = []
        self._warm_up = warm_up
        self._floor: Floor | None = None
        self._began: float | None = None

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Have kernels built for the batch's shapes, outside of both times."""
        assert isinstance(pl_module, TaskMixing)
        if batch_idx < self._warm_up:
            return
        if self._floor is None:
            self._floor = Floor(pl_module)
        before = now(pl_module.device)
        with trainer.precision_plugin.forward_context():
            self._floor.step(batch)
        if self._began is not None:
            self._began += now(pl_module.device) - before

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, *_: Any
    ) -> None:
        """Record the step's time, and time its floor."""
        if self._floor is None:
            return
        ended = now(pl_module.device)
        with trainer.precision_plugin.forward_context():
            self._floor.step(batch)
        if self._began is not None:
            self.steps.append(ended - self._began)
            self.floors.append(now(pl_module.device) - ended)
        self._began = now(pl_module.device)


def measure_floor(
    case: Case, steps: int, warm_up: int, folder: Path, device: torch.device, matrix_rate: float
) -> Row:
    """Train a case as a run does, and time each of `steps` steps and its floor."""
    probe = FloorProbe(warm_up)
    built = build_case(case, warm_up + 1 + steps, folder, device)
    outcome = fit_stage(
        built.module, built.data, built.stage, name=STAGE_OF[case.method], config=built.config,
        folder=folder, observers=[probe],
    )  # fmt: skip
    passes = 1 + case.tasks + (case.method == "meta_tartan")
    seconds = median(probe.steps) * outcome.steps
    return Row(
        section="floor",
        what=f"a step / {passes} passes and an update",
        case=str(case),
        ratio=ratio(probe.steps, probe.floors),
        seconds=median(probe.steps),
        tokens_s=sum(outcome.cost.tokens.values()) / seconds,
        padding=100 * (outcome.cost.padding_share or 0.0),
        matrix=100 * sum(outcome.cost.flops.values()) / seconds / matrix_rate,
    )


def _use_torch_attention(case: BuiltCase) -> None:
    body: Any = case.module.body
    body.set_attn_implementation("sdpa")


ABLATIONS: dict[str, tuple[list[str], list[str], Callable[[BuiltCase], object]]] = {
    "packed texts": ([], ["packed=false"], lambda case: None),
    "16 random bits an element for dropout": (
        [], [], lambda case: replace_dropout(case.module, nn.Dropout)
    ),
    "attention with the same dropout, in place": (["packed=false"], [], _use_torch_attention),
}  # fmt: skip
"""By optimisation: overrides of both cases, those that turn it off, and what does so instead."""


def measure_ablation(name: str, case: Case, rounds: int, folder: Path, device: torch.device) -> Row:
    """Time three steps without an optimisation and with it, in turn, on the same batches."""
    both, without, turn_off = ABLATIONS[name]
    parts = {}
    for label, more in (("with", ()), ("without", without)):
        built = build_case(case, 3, folder / label, device, *both, *more)
        if label == "without":
            turn_off(built)
        parts[label] = partial(_steps, built.stepper(), built.batches())
    times = time_interleaved(parts, rounds, device)
    return Row("ablations", f"without {name}", str(case), ratio(times["without"], times["with"]))


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
    gc.collect()  # what is freed meanwhile would be subtracted
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
