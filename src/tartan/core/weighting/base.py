"""The interface of task weightings."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from tartan.core.mixture import Mixed
from tartan.core.step import Step


@dataclass(frozen=True)
class Needs:
    """What a weighting needs of steps and methods, known before training starts."""

    meta_gradient: bool = False  # steps bring a validation batch, the method has a meta head
    second_batches: bool = False  # steps bring two independent batches of each task
    one_batch: bool = False  # a step samples auxiliary tasks, which share one batch


class Weighting(nn.Module, ABC):
    """Combines the tasks' gradients of the body, `g_i`, into `sum_i alpha_i g_i`.

    Learned state belongs in buffers: so it is in every checkpoint, and a step with non-finite
    numbers leaves it unchanged.

    Args:
        task_names: names of the tasks, in the order of their gradients; the end task first.
    """

    needs: Needs = Needs()

    def __init__(self, task_names: list[str]) -> None:
        super().__init__()
        self.task_names = list(task_names)

    @abstractmethod
    def mix(self, step: Step) -> Mixed:
        """Ask the step for every task's gradient once, in order, and combine them."""

    def batch_sizes(self, tasks: Sequence[str], total: int) -> dict[str, int]:
        """Return how many of one batch's `total` examples each sampled task gets (`one_batch`)."""
        raise NotImplementedError

    def overall(self) -> Tensor | None:
        """Return the weights of all tasks, `(tasks,)`; None where a step's weights are these."""
        return None
