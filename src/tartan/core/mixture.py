"""Combines tasks' gradients one at a time in a single body-sized buffer."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tartan.core.body import BodyGradient, Summed, cosine
from tartan.core.gradients import Gradient, combine_


@dataclass(frozen=True)
class Mixed:
    """The combined gradient of a step, `sum_i alpha_i g_i`."""

    gradient: Gradient
    weights: dict[str, Tensor]  # the applied `alpha_i` of each task, by name, scalars
    cosines: Tensor | None = None  # of each task's gradient with the meta-gradient, `(tasks,)`
    squared_norm: Tensor | None = None  # of `gradient`, if it is known without computing it


class RunningMean:
    """Computes `sum_i f_i g_i / sum_i f_i` for factors that are not negative.

    What is stored is the mean so far, so that a softmax over all tasks needs one gradient's memory.
    """

    def __init__(self) -> None:
        self._mean: Gradient = []
        self._factors: dict[str, Tensor] = {}
        self._sum: Tensor | None = None
        self._squared_norm: Tensor | None = None

    def add(self, gradient: BodyGradient, factor: Tensor | float) -> None:
        """Add a gradient, which is consumed, with its factor, a scalar; NaN if it is negative."""
        factor = _scalar(gradient, factor)
        factor = torch.where(factor < 0, math.nan, factor)  # a step that is not finite is skipped
        self._factors[gradient.task.name] = factor
        if self._sum is None:
            self._squared_norm = gradient.squared_norm
            self._mean, self._sum = gradient.take(), factor
            return
        self._squared_norm = None
        self._sum = self._sum + factor
        nothing = self._sum == 0  # as yet: a gradient of weight zero changes nothing
        share = factor / torch.where(nothing, torch.ones_like(factor), self._sum)
        combine_(self._mean, gradient.take(), share, mean=True)

    def mixed(self, cosines: Tensor | None = None) -> Mixed:
        """Return the mean of all that was added; `cosines` are put into the step's record."""
        factors = torch.stack(list(self._factors.values()))
        weights = dict(zip(self._factors, factors / factors.sum(), strict=True))
        return Mixed(self._mean, weights, cosines, self._squared_norm)


class RunningSum:
    """Computes `sum_i alpha_i g_i` for any weights, which need not sum to 1."""

    def __init__(self) -> None:
        self._sum: Gradient = []
        self._weights: dict[str, Tensor] = {}

    def add(self, gradient: BodyGradient, weight: Tensor | float) -> None:
        """Add a gradient, which is consumed, with its weight, a scalar."""
        weight = self._weights[gradient.task.name] = _scalar(gradient, weight)
        values = gradient.take()
        self._sum = self._sum or [None] * len(values)
        combine_(self._sum, values, weight)

    def cosine(self, direction: BodyGradient) -> Tensor:
        """Return the cosine of the sum so far with `direction`, a scalar; 0 if a norm is 0."""
        so_far = Summed(self._sum, direction.loss)
        return cosine(direction, BodyGradient(direction.body, direction.task, lambda: so_far))

    def mixed(self, cosines: Tensor | None = None) -> Mixed:
        """Return the sum of all that was added; `cosines` are put into the step's record."""
        return Mixed(self._sum, self._weights, cosines)


def weighted_mean(gradients: Iterable[BodyGradient], factors: Tensor) -> Mixed:
    """Return `sum_i f_i g_i / sum_i f_i` for factors `(tasks,)` known before the gradients."""
    mean = RunningMean()
    for gradient, factor in zip(gradients, factors, strict=True):
        mean.add(gradient, factor)
    return mean.mixed()


def weighted_sum(gradients: Iterable[BodyGradient], weights: Tensor) -> Mixed:
    """Return `sum_i alpha_i g_i` for weights `(tasks,)` known before the gradients are added."""
    total = RunningSum()
    for gradient, weight in zip(gradients, weights, strict=True):
        total.add(gradient, weight)
    return total.mixed()


def _scalar(gradient: BodyGradient, value: Tensor | float) -> Tensor:
    return torch.as_tensor(value, device=gradient.loss.device).reshape(())
