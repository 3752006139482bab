"""Estimates of each method's time and memory: measured passes times planned steps.

The time is that of the passes and updates, which no step can do without (`src/bench/floor.py`);
the rest of a step comes on top. The memory is that of tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from src.check.rates import Machine, Rate
from src.check.schedule import MethodPlan, StagePlan
from src.core.task_names import END_TASK

ALIGNMENT_PASSES = 1.4
"""What `weighting=meta_examples` adds, in passes of an auxiliary task (docs/algorithm.md)."""
_MOMENTS = 2
"""Of AdamW, each as large as the parameters."""


@dataclass(frozen=True)
class StageEstimate:
    """One stage.

    Attributes:
        name: its name.
        steps: optimiser steps, unless patience ends it.
        least_steps: steps after which patience ends it at the earliest.
        batch_size: examples of each task in a step.
        passes: forward and backward passes over a batch in a step.
        step_seconds: of a step.
        evaluation_seconds: of one evaluation on dev.
        seconds: of all steps and evaluations.
        least_seconds: until patience ends it at the earliest.
        bytes: of all tensors at the peak.
    """

    name: str
    steps: int
    least_steps: int
    batch_size: int
    passes: int
    step_seconds: float
    evaluation_seconds: float
    seconds: float
    least_seconds: float
    bytes: int


@dataclass(frozen=True)
class MethodEstimate:
    """A method's stages, one after the other, and the evaluation on test."""

    name: str
    configured: bool
    stages: list[StageEstimate]
    seconds: float
    least_seconds: float
    bytes: int


@dataclass(frozen=True)
class Measured:
    """The measurements that an estimate rests on.

    Attributes:
        machine: this one.
        rates: of each task.
        positions: of a batch, by task and batch size.
        dev: positions of an evaluation on dev.
        test: the same on test.
    """

    machine: Machine
    rates: Mapping[str, Rate]
    positions: Mapping[str, Mapping[int, float]]
    dev: int
    test: int


def batch_sizes(plans: list[MethodPlan]) -> dict[str, set[int]]:
    """The sizes of batches that some plan takes of each task; the end task is always there."""
    sizes: dict[str, set[int]] = {END_TASK: set()}
    for stage in (stage for plan in plans for stage in plan.stages):
        for task in stage.tasks:
            sizes.setdefault(task, set()).add(stage.settings.batch_size)
        if stage.meta_gradient:
            sizes[END_TASK].add(stage.settings.meta_batch_size)
            apart = stage.settings.meta_head.examples_apart
            sizes[END_TASK] |= {apart} if apart else set()
    return sizes


def estimate(plan: MethodPlan, measured: Measured) -> MethodEstimate:
    """Of one method."""
    stages = [_stage(stage, measured) for stage in plan.stages]
    test = measured.test * measured.rates[END_TASK].forward_seconds
    return MethodEstimate(
        name=plan.name,
        configured=plan.configured,
        stages=stages,
        seconds=test + sum(stage.seconds for stage in stages),
        least_seconds=test + sum(stage.least_seconds for stage in stages),
        bytes=max(stage.bytes for stage in stages),
    )


def _stage(plan: StagePlan, measured: Measured) -> StageEstimate:
    step = _step_seconds(plan, measured)
    evaluation = measured.dev * measured.rates[END_TASK].forward_seconds

    def seconds(steps: int) -> float:
        evaluations = 0 if plan.interval is None else steps // plan.interval
        return steps * step + evaluations * evaluation

    return StageEstimate(
        name=plan.name,
        steps=plan.steps,
        least_steps=plan.least_steps,
        batch_size=plan.settings.batch_size,
        passes=plan.passes,
        step_seconds=step,
        evaluation_seconds=0.0 if plan.interval is None else evaluation,
        seconds=seconds(plan.steps),
        least_seconds=seconds(plan.least_steps),
        bytes=_bytes(plan, measured),
    )


def _step_seconds(plan: StagePlan, measured: Measured) -> float:
    settings, rates = plan.settings, measured.rates

    def positions(task: str, size: int) -> float:
        return measured.positions[task][size]

    seconds = measured.machine.update_seconds
    for task in plan.tasks:
        # a frozen body is passed forwards only
        rate = rates[task].forward_seconds if settings.freeze_body else rates[task].seconds
        times = 2.0 if plan.weighting.needs.second_batches else 1.0
        if settings.sampled is not None and task != END_TASK:
            times /= plan.auxiliaries  # on average: one batch, shared by those that are sampled
        if plan.weighting.needs.example_weights and task != END_TASK:
            times += ALIGNMENT_PASSES
        seconds += times * rate * positions(task, settings.batch_size)
    if plan.meta_gradient:
        end = rates[END_TASK]
        seconds += end.seconds * positions(END_TASK, settings.meta_batch_size)
        apart = settings.meta_head.examples_apart
        seconds += end.forward_seconds * positions(END_TASK, apart) if apart else 0.0
    return seconds


def gradients_held(plan: StagePlan) -> int:
    """Body-sized gradients at once: the current one, the mixed one, that of the meta-gradient.

    Where auxiliary tasks are sampled for a meta-gradient, the end task's is kept apart.
    """
    tasks = len(plan.tasks)
    if plan.weighting.needs.all_gradients:
        return tasks + 1 + int(plan.meta_gradient)
    if plan.weighting.needs.one_batch:
        return 2 + 2 * int(plan.meta_gradient)
    return 1 if tasks == 1 else 2 + int(plan.meta_gradient)


def _bytes(plan: StagePlan, measured: Measured) -> int:
    body, rates = measured.machine.body, measured.rates
    heads = sum(rates[task].head for task in plan.with_own_head)
    meta_head = rates[END_TASK].head * 4 if plan.meta_gradient else 0  # with moments and gradient
    trained = heads if plan.settings.freeze_body else body + heads
    gradients = heads if plan.settings.freeze_body else heads + gradients_held(plan) * body
    held = max(rates[task].held for task in plan.tasks)
    return body + heads + meta_head + _MOMENTS * trained + gradients + held
