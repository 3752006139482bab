"""Computes what a run had spent at each evaluation: steps, seconds or floating-point operations."""

from __future__ import annotations

from typing import Literal

from tartan.report.reading.grouping import Setting
from tartan.report.reading.run import Run
from tartan.run_folder.result import Result

Unit = Literal["steps", "seconds", "flops"]
Cost = Literal["seconds", "flops"]
"""A unit in which a whole run's cost is told."""
Curve = list[tuple[float, float]]
"""Pairs of the cost so far and a metric."""


def evaluations(result: Result, unit: Unit) -> Curve:
    """Return cost so far and dev metric of each evaluation; none if the unit was not counted.

    The cost includes that of earlier stages; within a stage, it is taken to grow evenly with the
    steps.
    """
    amounts = [getattr(stage, unit) for stage in result.stages]
    if None in amounts:
        return []
    found: Curve = []
    before = 0.0
    for stage, amount in zip(result.stages, amounts, strict=True):
        steps = max(1, stage.steps)
        found += [(before + amount * step / steps, score) for step, score in stage.evaluations]
        before += amount
    return found


def points_of(setting: Setting, unit: Cost) -> list[tuple[float, float, Run]]:
    """Return whole cost, test metric (%), and run, of the setting's runs that have both."""
    return [
        (spent, 100 * score, run)
        for run in setting.runs
        if (spent := getattr(run.result, unit)) is not None
        and (score := run.result.score("whole")) is not None
    ]
