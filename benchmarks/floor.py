"""Compares the time of a step with its floor: the passes and the update that every step needs.

The floor of a step is a separate forward and backward pass of each of its batches through the
encoder and the task's head, and one optimiser step: `n + 1` passes for MT-TARTAN with `n` auxiliary
tasks, `n + 2` for META-TARTAN. It has the run's micro-batches, precision and kernels (for dropout
and attention).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import lightning.pytorch as pl
from torch import nn

from benchmarks.case import STAGE_OF, Case
from benchmarks.measure import Ratio, ratio
from benchmarks.row import Row
from tartan.core.body import SharedBody
from tartan.core.gradients import put_gradient
from tartan.core.passes import Passes, Purpose, trained
from tartan.core.task import Batch, StepBatch, Task
from tartan.experiment.prepare import enabled_stages, prepare
from tartan.experiment.run import StageChain
from tartan.methods.measuring import now
from tartan.methods.module import TaskMixing


class Floor:
    """Takes the floor of a module's steps, on copies of its body and heads.

    Args:
        module: the module, which is not changed.
    """

    def __init__(self, module: TaskMixing) -> None:
        meta_head = None if module.meta_head is None else module.meta_head.head
        heads = [task.head for task in module.tasks]
        body, heads, meta_head = copy.deepcopy((module.body, heads, meta_head))
        for copied in (body, *heads, *([meta_head] if meta_head else [])):
            _remove_hooks(copied)  # with which the run counts the cost of its passes
        self._passes = Passes(SharedBody(body, module.inner_products))
        self._tasks = [replace(t, head=h) for t, h in zip(module.tasks, heads, strict=True)]
        self._meta = None if meta_head is None else replace(module.tasks[0], head=meta_head)
        end, others = (None, heads) if module.end_task is None else (heads[0], heads[1:])
        self._optimiser = module.optimisation.optimiser(body, end, others)

    def step(self, batch: StepBatch) -> None:
        """Take the passes of a step's batches and one optimiser step."""
        for task in self._tasks:
            self._pass(Purpose("task", task.name), task, batch.tasks[task.name])
        if batch.meta_batch is not None and self._meta is not None:
            self._pass(Purpose("meta_gradient"), self._meta, batch.meta_batch)
        self._optimiser.step()

    def _pass(self, purpose: Purpose, task: Task, batch: Batch) -> None:
        gradient = self._passes.gradient(purpose, task, batch)
        self._passes.body.put(gradient.values)
        if gradient.of_head:
            put_gradient(trained(task.head), gradient.of_head)


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
        warm_up: number of steps before the first floor, in which the run's memory grows and most
            lengths occur for the first time. The step after them, in which the floor's memory
            grows, is not counted either.

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
        assert isinstance(pl_module, TaskMixing)
        if self._floor is None:
            return
        ended = now(pl_module.device)
        with trainer.precision_plugin.forward_context():
            self._floor.step(batch)
        after = now(pl_module.device)
        if self._began is not None:
            self.steps.append(ended - self._began)
            self.floors.append(after - ended)
        self._began = now(pl_module.device)


@dataclass(frozen=True)
class FloorRow(Row):
    """A case compared with its floor.

    Attributes:
        encoder: name of the encoder.
        method: name of the method.
        tasks: number of auxiliary tasks.
        passes: number of forward and backward passes of the floor.
        ratio: a step's time divided by the floor's.
        seconds: median time of a step [s].
        tokens_per_second: number of tokens of a step, without padding, divided by its time.
        padding_percent: padding among the positions that go through the body [%].
        percent_of_matrix_rate: operations a second, compared with what products of large square
            matrices reach on the same device [%].
    """

    title = "time of a step, divided by its floor's: median (quartiles)"
    encoder: str
    method: str
    tasks: int
    passes: int
    ratio: Ratio
    seconds: float
    tokens_per_second: float
    padding_percent: float
    percent_of_matrix_rate: float


def measure_floor(
    case: Case, encoder: str, steps: int, folder: Path, warm_up: int, matrix_rate: float
) -> FloorRow:
    """Train a case, and time each of `steps` steps and its floor.

    Args:
        case: the case.
        encoder: name of the case's encoder.
        steps: number of steps to count.
        folder: the run folder.
        warm_up: see `FloorProbe`.
        matrix_rate: throughput of products of large square matrices on this device [FLOP/s].
    """
    probe = FloorProbe(warm_up)
    config = case.config(warm_up + 1 + steps, folder)
    stages, name = enabled_stages(config), STAGE_OF[case.method]
    outcome = StageChain(config, folder, prepare(config, stages)).run(name, stages[name], [probe])
    seconds = median(probe.steps) * outcome.steps
    return FloorRow(
        encoder=encoder,
        method=case.method,
        tasks=case.tasks,
        passes=1 + case.tasks + (case.method == "meta_tartan"),
        ratio=ratio(probe.steps, probe.floors),
        seconds=median(probe.steps),
        tokens_per_second=sum(outcome.cost.tokens.values()) / seconds,
        padding_percent=100 * outcome.cost.padding_share,
        percent_of_matrix_rate=100 * sum(outcome.cost.flops.values()) / seconds / matrix_rate,
    )
