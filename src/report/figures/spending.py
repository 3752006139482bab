"""Computes what a run had spent at each evaluation: steps, seconds or floating-point operations."""

from __future__ import annotations

from typing import Literal

from src.report.reading.grouping import Setting
from src.report.reading.run import Run
from src.run_folder.result import Result

Unit = Literal["steps", "seconds", "flops"]
Curve = list[tuple[float, float]]
"""Pairs of the cost so far and a metric."""


def total(result: Result, unit: Unit) -> float | None:
    """Return a run's whole cost in this unit; None if the run did not count it."""
    amounts = [getattr(stage, unit) for stage in result.stages]
    return None if None in amounts else float(sum(amounts))


def evaluations(result: Result, unit: Unit) -> Curve:
    """Return cost so far and dev metric of each evaluation; none if the unit was not counted.

    The cost includes that of earlier stages; within a stage, it is taken to grow evenly with the
    steps.
    """
    if total(result, unit) is None:
        return []
    found: Curve = []
    before = 0.0
    for stage in result.stages:
        amount, steps = getattr(stage, unit), max(1, stage.steps)
        found += [(before + amount * step / steps, score) for step, score in stage.evaluations]
        before += amount
    return found


def points_of(setting: Setting, unit: Unit) -> list[tuple[float, float, Run]]:
    """Return whole cost, test metric (%), and run, of the setting's runs that have both."""
    return [
        (spent, 100 * score, run)
        for run in setting.runs
        if (spent := total(run.result, unit)) is not None
        and (score := run.result.score("whole")) is not None
    ]
