"""Weights that are not learned: equal, chosen, given by the end task's alone, or random."""

import math
from collections.abc import Mapping
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor

from tartan.core.mixture import Mixed, weighted_mean
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting


class FixedWeighting(Weighting):
    """Constant weights `alpha`; the base of `Uniform`, `Static` and `EndTaskShare`."""

    alpha: Tensor

    def __init__(self, task_names: list[str], alpha: list[float]) -> None:
        super().__init__(task_names)
        self.register_buffer("alpha", torch.tensor(alpha))

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients, weighted by `alpha`."""
        return weighted_mean(step.gradients(), self.alpha)


class Uniform(FixedWeighting):
    """`alpha_i = 1 / (number of tasks)`: MT-TARTAN's default (paper, section 3.1)."""

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names, [1.0 / len(task_names)] * len(task_names))


class Static(FixedWeighting):
    """`alpha_i` in proportion to the given `values`, scaled to sum to 1.

    Args:
        task_names: the tasks.
        values: a weight for each task by name, `end_task` included; not negative.
    """

    def __init__(
        self, task_names: list[str], values: Mapping[str, Annotated[float, Ge(0)]]
    ) -> None:
        if set(values) != set(task_names):
            raise ValueError(f"values must name the tasks {sorted(task_names)}, not {dict(values)}")
        total = sum(float(values[name]) for name in task_names)
        if not 0 < total < math.inf:
            raise ValueError(f"values must not all be zero, nor too large, got {dict(values)}")
        super().__init__(task_names, [float(values[name]) / total for name in task_names])


class EndTaskShare(FixedWeighting):
    """`alpha_0 = share` for the end task; the `n` auxiliary tasks have `(1 - share) / n` each.

    Args:
        task_names: the tasks, the end task first; alone, it has the weight 1.
        share: the end task's weight.
    """

    def __init__(self, task_names: list[str], share: Annotated[float, Gt(0), Lt(1)] = 0.95) -> None:
        super().__init__(task_names, shares_of(len(task_names), share))


def shares_of(count: int, end_task: float) -> list[float]:
    """Return weights of `count` tasks that sum to 1: the end task's, and equal ones of others."""
    others = count - 1
    return [end_task] + [(1 - end_task) / others] * others if others else [1.0]


class Random(Weighting):
    """`alpha = softmax(z)`, `z ~ N(0, 1)` drawn anew in each step (RLW, Lin et al., 2022)."""

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients, weighted by this step's draw."""
        alpha = step.normal(len(self.task_names)).softmax(dim=0)
        return weighted_mean(step.gradients(), alpha)
