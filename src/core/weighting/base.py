"""The interface at which a task weighting plugs into the training step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from src.core.mixture import Mixed, weighted_mean
from src.core.step import Step


@dataclass(frozen=True)
class Needs:
    """What has to be known of a weighting before training starts.

    Attributes:
        meta_gradient: it asks for the meta-gradient: steps bring a validation batch, the method has
            a meta head.
        example_weights: it weighs single examples, by forward derivatives.
        second_batches: it asks for second gradients: steps bring two independent batches a task.
        all_gradients: it holds every task's gradient at once.
    """

    meta_gradient: bool = False
    example_weights: bool = False
    second_batches: bool = False
    all_gradients: bool = False


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


class FixedWeighting(Weighting):
    """`alpha` stays what it was at the start; the base of `Uniform` and `Static`."""

    alpha: Tensor

    def __init__(self, task_names: list[str], alpha: list[float]) -> None:
        super().__init__(task_names)
        self.register_buffer("alpha", torch.tensor(alpha))

    def mix(self, step: Step) -> Mixed:
        """The gradients' mean by `alpha`."""
        return weighted_mean(step.gradients(), self.alpha)
