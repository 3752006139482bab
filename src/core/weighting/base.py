"""The interface at which a task weighting plugs into the training step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from src.core.mixture import Mixed, weighted_mean
from src.core.step import Step
from src.core.weighting.apportioned import apportioned


@dataclass(frozen=True)
class Needs:
    """The needs of a weighting, known before training starts.

    Attributes:
        meta_gradient: it asks for the meta-gradient: steps bring a validation batch, the method has
            a meta head.
        example_weights: it weighs single examples, by forward derivatives.
        second_batches: it asks for second gradients: steps bring two independent batches a task.
        all_gradients: it holds every task's gradient at once.
        every_task: it remembers from step to step what all tasks did, so that none may be missing.
        one_batch: each step samples auxiliary tasks, which share one batch.
    """

    meta_gradient: bool = False
    example_weights: bool = False
    second_batches: bool = False
    all_gradients: bool = False
    every_task: bool = False
    one_batch: bool = False


class Weighting(nn.Module, ABC):
    """Mixes the tasks' gradients of the body, `g_i`, into `sum_i alpha_i g_i`.

    Learned state belongs in buffers: so it is in every checkpoint, and a step whose numbers went
    wrong leaves it as it was.

    Args:
        task_names: the tasks, in the order of their gradients; the end task first.
    """

    needs: Needs = Needs()

    def __init__(self, task_names: list[str]) -> None:
        super().__init__()
        self.task_names = list(task_names)

    @abstractmethod
    def mix(self, step: Step) -> Mixed:
        """Ask the step for every task's gradient once, in order, and put them together."""

    def mix_sampled(self, step: Step) -> Mixed:
        """`mix` for a step that holds some of the tasks.

        Buffers with an entry for each task have those of the step's tasks alone in the meantime, so
        that a weighting need not know of the others.
        """
        names = self.task_names
        places = [names.index(task.name) for task in step.tasks]
        whole = {
            name: buffer
            for name, buffer in self._buffers.items()
            if buffer is not None and buffer.ndim and len(buffer) == len(names)
        }
        try:
            self.task_names = [names[place] for place in places]
            self._buffers.update({name: buffer[places] for name, buffer in whole.items()})
            mixed = self.mix(step)
            for name, buffer in whole.items():
                part = self._buffers[name]
                assert part is not None
                buffer[places] = part
        finally:
            self.task_names = names
            self._buffers.update(whole)
        return mixed

    def batch_sizes(self, tasks: Sequence[str], total: int) -> dict[str, int]:
        """Return how many of one batch's `total` examples each sampled auxiliary task gets."""
        return dict(zip(tasks, apportioned(total, [1 / len(tasks)] * len(tasks)), strict=True))

    def overall(self) -> Tensor | None:
        """Return the tasks' overall weights, `(tasks,)`, where a step's weights do not tell."""
        return None


class FixedWeighting(Weighting):
    """`alpha` stays what it was at the start; the base of `Uniform` and `Static`."""

    alpha: Tensor

    def __init__(self, task_names: list[str], alpha: list[float]) -> None:
        super().__init__(task_names)
        self.register_buffer("alpha", torch.tensor(alpha))

    def mix(self, step: Step) -> Mixed:
        """The gradients' mean by `alpha`."""
        return weighted_mean(step.gradients(), self.alpha)
