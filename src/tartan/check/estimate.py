"""Estimates each method's time and memory from measured passes and planned steps.

The time is that of passes and updates, which every step needs (`benchmarks/floor.py`); work of
a step is not included. The memory is that of tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tartan.check.rates import Machine, Rate
from tartan.check.schedule import MethodPlan, StagePlan
from tartan.core.task_names import END_TASK

ALIGNMENT_PASSES = 1.4
"""Cost of `weighting=meta_examples`, in passes of an auxiliary task."""
_MOMENTS = 2
"""Number of AdamW's states, each as large as the parameters."""


@dataclass(frozen=True)
class StageEstimate:
    """The estimated time and memory of a stage.

    Attributes:
        name: the stage's name.
        steps: optimiser steps, unless patience ends the stage.
        batch_size: examples of each task in a step.
        passes: forward and backward passes over a batch in a step.
        step_seconds: time of a step [s].
        seconds: time of all steps and evaluations [s].
        least_seconds: time after which patience can end the stage [s].
        bytes: size of all tensors at the peak.
    """

    name: str
    steps: int
    batch_size: int
    passes: int
    step_seconds: float
    seconds: float
    least_seconds: float
    bytes: int


@dataclass(frozen=True)
class MethodEstimate:
    """The estimates of a method's stages, and of the method with its evaluation on test.

    Attributes:
        with_baseline: whether the times include fine-tuning at equal cost.
    """

    name: str
    configured: bool
    stages: list[StageEstimate]
    with_baseline: bool
    seconds: float
    least_seconds: float
    bytes: int


@dataclass(frozen=True)
class Measured:
    """The measurements from which estimates are made.

    Attributes:
        machine: measurements of the machine.
        rates: measurements of each task's passes.
        positions: number of positions in a batch, by task and batch size.
        dev: number of positions in an evaluation on dev.
        test: number of positions in an evaluation on test.
    """

    machine: Machine
    rates: Mapping[str, Rate]
    positions: Mapping[str, Mapping[int, float]]
    dev: int
    test: int


def batch_sizes(plans: list[MethodPlan]) -> dict[str, set[int]]:
    """Return the batch sizes of each task in the planned stages, the end task always included."""
    sizes: dict[str, set[int]] = {END_TASK: set()}
    for stage in (stage for plan in plans for stage in plan.stages):
        for task in stage.tasks:
            sizes.setdefault(task, set()).add(stage.settings.batch_size)
        if stage.meta_gradient:
            sizes[END_TASK].add(stage.settings.meta_batch_size)
            apart = stage.settings.meta_head.extra_examples
            sizes[END_TASK] |= {apart} if apart else set()
    return sizes


def estimate(
    plan: MethodPlan, measured: Measured, *, tested: bool = True, with_baseline: bool = False
) -> MethodEstimate:
    """Return the estimate of one method.

    Args:
        plan: its stages.
        measured: the measurements.
        tested: whether the run evaluates on test.
        with_baseline: whether the run then fine-tunes at equal cost, which is taken to last as
            long as the method itself.
    """
    stages = [_stage(stage, measured) for stage in plan.stages]
    test = measured.test * measured.rates[END_TASK].forward_seconds if tested else 0.0
    times = 2 if with_baseline else 1
    return MethodEstimate(
        name=plan.name,
        configured=plan.configured,
        stages=stages,
        with_baseline=with_baseline,
        seconds=times * (test + sum(stage.seconds for stage in stages)),
        least_seconds=times * (test + sum(stage.least_seconds for stage in stages)),
        bytes=max(stage.bytes for stage in stages),
    )


def _stage(plan: StagePlan, measured: Measured) -> StageEstimate:
    step = _step_seconds(plan, measured)
    evaluation = measured.dev * measured.rates[END_TASK].forward_seconds

    def seconds(steps: int) -> float:
        # the last step is followed by one too
        evaluations = 0 if plan.interval is None else -(-steps // plan.interval)
        return steps * step + evaluations * evaluation

    return StageEstimate(
        name=plan.name,
        steps=plan.steps,
        batch_size=plan.settings.batch_size,
        passes=plan.passes,
        step_seconds=step,
        seconds=seconds(plan.steps),
        least_seconds=seconds(plan.least_steps),
        bytes=_bytes(plan, measured),
    )


def _step_seconds(plan: StagePlan, measured: Measured) -> float:
    settings, rates, positions = plan.settings, measured.rates, measured.positions
    seconds = measured.machine.update_seconds
    for task in plan.tasks:
        # a frozen body is passed forwards only
        rate = rates[task].forward_seconds if settings.freeze_body else rates[task].seconds
        times = 2.0 if plan.weighting.needs.second_batches else 1.0
        if settings.sampled is not None and task != END_TASK:
            times /= plan.auxiliaries  # on average: one batch, shared by those that are sampled
        if plan.weighting.needs.example_weights and task != END_TASK:
            times += ALIGNMENT_PASSES
        seconds += times * rate * positions[task][settings.batch_size]
    if plan.meta_gradient:
        end = rates[END_TASK]
        seconds += end.seconds * positions[END_TASK][settings.meta_batch_size]
        apart = settings.meta_head.extra_examples
        seconds += end.forward_seconds * positions[END_TASK][apart] if apart else 0.0
    return seconds


def gradients_in_memory(plan: StagePlan) -> int:
    """Return the number of body-sized gradients in memory at the peak of a step.

    These are the current one, the combined one and that of the meta-gradient; where auxiliary tasks
    are sampled for a meta-gradient, the end task's as well.
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
    gradients = heads if plan.settings.freeze_body else heads + gradients_in_memory(plan) * body
    held = max(rates[task].held for task in plan.tasks)
    return body + heads + meta_head + _MOMENTS * trained + gradients + held
