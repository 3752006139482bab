"""The interface at which a task weighting plugs into the training step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Observation:
    """What a weighting may know of one task in one step; every field is a scalar tensor.

    `cosine` is `cos(g_meta, g_i)` over the body's parameters, and None where no meta-gradient is
    computed.
    """

    loss: Tensor
    squared_norm: Tensor
    cosine: Tensor | None = None


class Weighting(nn.Module, ABC):
    """Turns the tasks' body gradients `g_i` into `sum_i alpha_i g_i`, one task at a time.

    In each step the training step calls `factor(i, ...)` once for every task, in order; `finish()`
    then says what the weights were. Where they `sums_to_one`, a factor is a relative weight, of
    which the step takes the share in the sum of all factors: so it holds the same number of
    body-sized buffers whatever the number of tasks, although the weights that are finally applied
    may depend on all of them (softmax). Otherwise the factors are the weights.

    A weighting that `needs_gramian` has `weigh(gramian)` called with all inner products
    `<g_i, g_j>`, shape `(tasks, tasks)`, before the first `factor`; all gradients are held for it.
    One that `needs_second_batch` gets `<g_i, g'_j>` instead, `g'_j` the gradient on a batch of
    task `j` that is drawn independently of the step's.

    A weighting that `weighs_examples` has `weigh_examples` called for each auxiliary task's batch
    before its gradient is computed, which is then that of the weighted batch.

    Learned state belongs in buffers, so that it is in every checkpoint.
    """

    sums_to_one: ClassVar[bool] = True
    needs_meta_gradient: ClassVar[bool] = False
    needs_gramian: ClassVar[bool] = False
    weighs_examples: ClassVar[bool] = False
    needs_second_batch: bool = False

    def __init__(self, task_names: list[str]) -> None:
        super().__init__()
        self.task_names = list(task_names)

    def weigh(self, gramian: Tensor) -> None:
        """Take the Gramian, where the weighting needs it."""
        raise NotImplementedError(f"{type(self).__name__} needs no Gramian")

    def weigh_examples(self, alignments: Tensor, units: Tensor) -> Tensor:
        """Weights of a batch's examples, shape `(examples,)`; their mean over units is 1.

        Args:
            alignments: `<g_meta, g_j>` of each example's mean loss, shape `(examples,)`.
            units: how many units each example has, shape `(examples,)`.
        """
        raise NotImplementedError(f"{type(self).__name__} weighs no examples")

    @abstractmethod
    def factor(self, index: int, observation: Observation) -> Tensor:
        """The weight of task `index`, a scalar tensor: relative ones must not be negative."""

    @abstractmethod
    def finish(self) -> Tensor:
        """End the step: `alpha`, the weights that were applied, shape `(tasks,)`."""


class FixedWeighting(Weighting):
    """`alpha` stays what it was at the start; the base of `Uniform` and `Static`."""

    alpha: Tensor

    def __init__(self, task_names: list[str], alpha: list[float]) -> None:
        super().__init__(task_names)
        self.register_buffer("alpha", torch.tensor(alpha))

    def factor(self, index: int, observation: Observation) -> Tensor:
        return self.alpha[index]

    def finish(self) -> Tensor:
        return self.alpha
