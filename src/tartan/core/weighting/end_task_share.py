"""Constant weights that are given by the end task's alone."""

from __future__ import annotations

from tartan.core.weighting.base import FixedWeighting
from tartan.settings import Part, checked


class EndTaskShare(FixedWeighting):
    """`alpha_0 = share` for the end task; the `n` auxiliary tasks have `(1 - share) / n` each.

    Args:
        task_names: the tasks, the end task first; alone, it has the weight 1.
        share: the end task's weight.
    """

    @checked
    def __init__(self, task_names: list[str], share: Part = 0.95) -> None:
        super().__init__(task_names, shares_of(len(task_names), share))


def shares_of(count: int, end_task: float) -> list[float]:
    """Return weights of `count` tasks that sum to 1: the end task's, and equal ones of others."""
    others = count - 1
    return [end_task] + [(1 - end_task) / others] * others if others else [1.0]
