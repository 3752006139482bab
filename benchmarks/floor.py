"""Compares the time of a step with its floor: the passes and the update that every step needs.

The floor of a step is a separate forward and backward pass of each of its batches through the
encoder and the task's head, and one optimiser step: `n + 1` passes for MT-TARTAN with `n` auxiliary
tasks, `n + 2` for META-TARTAN. It has the run's micro-batches, precision and kernels.
"""

from __future__ import annotations

import copy
from pathlib import Path
from statistics import median
from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn

from benchmarks.case import STAGE_OF, Case, build_case, loss_of
from benchmarks.measure import Row, ratio
from tartan.core.task import Batch, StepBatch
from tartan.methods.cost import now
from tartan.methods.fit import fit_stage
from tartan.methods.module import TaskMixing


class Floor:
    """Takes the floor of a module's steps, on copies of its body and heads."""

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
    """Times each step of a run, and after it the floor on the same batches.

    The floor is also taken before the step, untimed, because the first pass of a batch builds
    kernels for its shapes. A step's time is all the time between two floors, with fetching the
    batch, logging and callbacks.

    Args:
        warm_up: number of steps before the first floor; the step after them is not counted either.

    Attributes:
        steps: time of each counted step [s].
        floors: time of its floor [s].
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
    """Train a case as a run does, and time each of `steps` steps and its floor.

    Args:
        case: the case.
        steps: number of steps to count.
        warm_up: see `FloorProbe`.
        folder: the run folder.
        device: the device.
        matrix_rate: throughput of products of large square matrices on it [FLOP/s].
    """
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
        padding=100 * outcome.cost.padding_share,
        matrix=100 * sum(outcome.cost.flops.values()) / seconds / matrix_rate,
    )
