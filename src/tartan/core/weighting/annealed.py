"""A curriculum: the end task's share rises from almost nothing to 1 while training goes on."""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le
from torch import Tensor

from tartan.core.mixture import Mixed, weighted_mean
from tartan.core.step import Step
from tartan.core.weighting.base import Weighting
from tartan.core.weighting.fixed import shares_of


class Annealed(Weighting):
    """`alpha_0` rises from `start` to 1 over `ramp` steps; the other tasks share the rest equally.

    Pre-training first is its extreme, a share that jumps from 0 to 1.

    With `one_task` a step trains a single task, so that it costs one pass instead of one a task.
    Each task collects its share as credit, and the one with the most credit has its turn and pays
    1 for it: after any number of steps each has had as many turns as its shares sum to, but for
    less than the number of tasks.

    Args:
        task_names: the tasks, the end task first.
        ramp: steps after which the end task is trained alone [steps].
        start: the end task's share in the first step.
        shape: of the rise, `linear` or `cosine`.
        one_task: whether each step trains one task only.
    """

    def __init__(
        self,
        task_names: list[str],
        ramp: Annotated[int, Ge(1)],
        start: Annotated[float, Ge(0), Le(1)] = 0.1,
        shape: Literal["linear", "cosine"] = "linear",
        one_task: bool = False,
    ) -> None:
        super().__init__(task_names)
        self.ramp, self.start, self.shape, self.one_task = ramp, start, shape, one_task
        self._turns: list[int] = []
        self._last = self.shares(0)
        self._credit = [0.0] * len(task_names)

    def shares(self, step: int) -> list[float]:
        """Return the tasks' weights in a step, of which the first is 0."""
        risen = min(1.0, step / self.ramp)
        if self.shape == "cosine":
            risen = (1 - math.cos(math.pi * risen)) / 2
        return shares_of(len(self.task_names), self.start + (1 - self.start) * risen)

    def turn(self, step: int) -> int:
        """Return the index of the task whose turn a step is: a function of the step alone."""
        while len(self._turns) <= step:
            for task, share in enumerate(self.shares(len(self._turns))):
                self._credit[task] += share
            chosen = max(range(len(self._credit)), key=self._credit.__getitem__)
            self._credit[chosen] -= 1
            self._turns.append(chosen)
        return self._turns[step]

    def mix(self, step: Step) -> Mixed:
        """Return the mean of the gradients weighted by the shares, or the gradient of one task."""
        self._last = self.shares(step.batch.step)
        if not self.one_task:
            return weighted_mean(step.gradients(), torch.tensor(self._last))
        step.tasks = [step.tasks[self.turn(step.batch.step)]]
        return weighted_mean(step.gradients(), torch.ones(1))

    def overall(self) -> Tensor:
        """Return the last step's shares, which a step of one task does not show."""
        return torch.tensor(self._last)
