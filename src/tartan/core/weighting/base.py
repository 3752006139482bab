"""The interface of task weightings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from tartan.core.mixture import Mixed
from tartan.core.step import Step


@dataclass(frozen=True)
class Needs:
    """What a weighting needs of steps and methods, known before training starts."""

    meta_gradient: bool = False  # steps bring a validation batch, the method has a meta head
    example_weights: bool = False  # it weights single examples, by forward-mode derivatives
    second_batches: bool = False  # steps bring two independent batches of each task
    every_task: bool = False  # it keeps values of all tasks, so that no step may leave one out
    one_batch: bool = False  # a step samples auxiliary tasks, which share one batch


class Weighting(nn.Module, ABC):
    """Combines the tasks' gradients of the body, `g_i`, into `sum_i alpha_i g_i`.

    Learned state belongs in buffers: so it is in every checkpoint, and a step with non-finite
    numbers leaves it unchanged.

    Args:
        task_names: names of the tasks, in the order of their gradients; the end task first.

    Attributes:
        needs: what it needs of steps and methods.
        per_task: names of its buffers of shape `(tasks, ...)`, for steps that sample tasks; None
            where it does not say, and steps cannot sample unless it has no buffers.
    """

    needs: Needs = Needs()
    per_task: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, task_names: list[str]) -> None:
        super().__init__()
        self.task_names = list(task_names)

    @abstractmethod
    def mix(self, step: Step) -> Mixed:
        """Ask the step for every task's gradient once, in order, and combine them."""

    def mix_sampled(self, step: Step) -> Mixed:
        """Call `mix` for some of the tasks, with only their entries in the `per_task` buffers."""
        names = self.task_names
        places = [names.index(task.name) for task in step.tasks]
        whole = {name: self.get_buffer(name) for name in self.per_task or ()}
        try:
            self.task_names = [names[place] for place in places]
            self._buffers.update({name: buffer[places] for name, buffer in whole.items()})
            mixed = self.mix(step)
            for name, buffer in whole.items():
                buffer[places] = self.get_buffer(name)
        finally:
            self.task_names = names
            self._buffers.update(whole)
        return mixed

    def batch_sizes(self, tasks: Sequence[str], total: int) -> dict[str, int]:
        """Return how many of one batch's `total` examples each sampled task gets."""
        return dict(zip(tasks, apportioned(total, [1 / len(tasks)] * len(tasks)), strict=True))

    def overall(self) -> Tensor | None:
        """Return the weights of all tasks, `(tasks,)`; None where a step's weights are these."""
        return None


def apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers with the sum `total` in proportion to `shares` (with the sum 1).

    They are found by the largest remainder (of shares that are equal to nine digits, the first is
    preferred); a share that would get nothing then takes one from the largest.
    """
    if len(shares) > total:
        raise ValueError(f"{total} examples cannot be shared by {len(shares)}")
    exact = [round(total * share, 9) for share in shares]
    parts = [int(value) for value in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: -round(exact[i] - parts[i], 9))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    while 0 in parts:
        parts[parts.index(max(parts))] -= 1
        parts[parts.index(0)] += 1
    return parts
