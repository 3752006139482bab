"""Computes what a run had spent at each evaluation: steps, seconds or floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from src.run_folder.result import Result

Unit = Literal["steps", "seconds", "flops"]


@dataclass(frozen=True)
class Evaluation:
    """An evaluation on dev: the metric, and the cost so far, earlier stages included."""

    spent: float
    score: float


def total(result: Result, unit: Unit) -> float | None:
    """Return a run's whole cost in this unit; None if the run did not count it."""
    amounts = [_of_stage(result, index, unit) for index in range(len(result.stages))]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def evaluations(result: Result, unit: Unit) -> list[Evaluation]:
    """Return the run's evaluations in order; none if it did not count this unit.

    Within a stage, the cost is taken to grow evenly with its steps.
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
