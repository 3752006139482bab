"""The cost of a run up to each evaluation on dev: steps, seconds, floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from src.run_folder.result import Result

Unit = Literal["steps", "seconds", "flops"]


@dataclass(frozen=True)
class Evaluation:
    """An evaluation on dev: what was spent by then, earlier stages included, and the metric."""

    spent: float
    score: float


def total(result: Result, unit: Unit) -> float | None:
    """Everything a run spent; None if it did not count it."""
    amounts = [_of_stage(result, index, unit) for index in range(len(result.stages))]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def evaluations(result: Result, unit: Unit) -> list[Evaluation]:
    """The run's evaluations in order; within a stage, spending grows evenly with its steps.

    Empty if the run did not count this unit.
    """
    if total(result, unit) is None:
        return []
    found, before = [], 0.0
    for index, stage in enumerate(result.stages):
        amount = _of_stage(result, index, unit) or 0.0
        steps = max(1, stage.steps)
        found += [Evaluation(before + amount * s / steps, v) for s, v in stage.evaluations]
        before += amount
    return found


def _of_stage(result: Result, index: int, unit: Unit) -> float | None:
    stage = result.stages[index]
    amounts = {"steps": float(stage.steps), "seconds": stage.seconds, "flops": stage.flops}
    return amounts[unit]
