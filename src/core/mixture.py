"""Mixtures of tasks' gradients, one gradient at a time, in one body-sized buffer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from src.core.body_gradient import BodyGradient
from src.core.gradients import Gradient, add_scaled_, cosine_of, dot, move_towards_


@dataclass(frozen=True)
class Mixed:
    """The body's gradient of a step, `sum_i alpha_i g_i`.

    Attributes:
        gradient: an entry for each of the body's parameters.
        weights: the `alpha` that were applied, shape `(tasks,)`.
        cosines: of each task's gradient with the meta-gradient, shape `(tasks,)`, where there is
            one.
        squared_norm: of `gradient`, where it is known without computing it.
    """

    gradient: Gradient
    weights: Tensor
    cosines: Tensor | None = None
    squared_norm: Tensor | None = None


class RunningMean:
    """`sum_i f_i g_i / sum_i f_i` for factors that are not negative.

    A gradient can be added before the factors of later ones are known, so that a softmax over all
    tasks needs no more memory than one gradient. What is held is the mean so far: the sum of
    factors, known at the end, need not be divided by.
    """

    def __init__(self) -> None:
        self._mean: Gradient = []
        self._factors: list[Tensor] = []
        self._sum: Tensor | None = None
        self._squared_norm: Tensor | None = None

    def add(self, gradient: BodyGradient, factor: Tensor) -> None:
        """Add a gradient, which is consumed, with a relative weight, a scalar."""
        self._factors.append(factor)
        if self._sum is None:
            self._squared_norm = gradient.squared_norm
            self._mean, self._sum = gradient.take(), factor
            return
        self._squared_norm = None
        self._sum = self._sum + factor
        nothing = self._sum == 0  # as yet: a gradient of weight zero changes nothing
        share = factor / torch.where(nothing, torch.ones_like(factor), self._sum)
        move_towards_(self._mean, gradient.take(), share)

    def mixed(self, cosines: Tensor | None = None) -> Mixed:
        """The mean of all that was added; `cosines` are for the step's record."""
        factors = torch.stack(self._factors)
        return Mixed(self._mean, factors / factors.sum(), cosines, self._squared_norm)


class RunningSum:
    """`sum_i alpha_i g_i` for any weights; they need not sum to 1."""

    def __init__(self) -> None:
        self._sum: Gradient = []
        self._weights: list[Tensor] = []

    def add(self, gradient: BodyGradient, weight: Tensor) -> None:
        """Add a gradient, which is consumed, with its weight, a scalar."""
        values = gradient.take()
        self._sum = self._sum or [None] * len(values)
        self._weights.append(weight)
        add_scaled_(self._sum, values, weight)

    def cosine(self, direction: BodyGradient) -> Tensor:
        """Of the sum so far with `direction`, over the whole body, a scalar; 0 where a norm is."""
        body, device = direction.body, direction.loss.device
        product = body.total(dot(direction.values, self._sum, body.products, device))
        squared = body.total(dot(self._sum, self._sum, body.products, device))
        return cosine_of(product, direction.squared_norm, squared)

    def mixed(self) -> Mixed:
        """The sum of all that was added."""
        return Mixed(self._sum, torch.stack(self._weights))


def weighted_mean(gradients: Iterable[BodyGradient], factors: Tensor) -> Mixed:
    """`sum_i f_i g_i / sum_i f_i`, factors `(tasks,)` being known before the gradients."""
    mean = RunningMean()
    for index, gradient in enumerate(gradients):
        mean.add(gradient, factors[index])
    return mean.mixed()
