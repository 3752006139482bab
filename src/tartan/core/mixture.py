"""Combines tasks' gradients one at a time in a single body-sized buffer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tartan.core.body_gradient import BodyGradient
from tartan.core.device import is_cpu
from tartan.core.gradients import Gradient, add_scaled_, cosine_of, dot, move_towards_


@dataclass(frozen=True)
class Mixed:
    """The combined gradient of a step, `sum_i alpha_i g_i`.

    Attributes:
        gradient: an entry for each of the body's parameters.
        weights: the applied weights `alpha`, shape `(tasks,)`.
        cosines: cosine of each task's gradient with the meta-gradient, shape `(tasks,)`; None
            without a meta-gradient.
        squared_norm: squared norm of `gradient`, a scalar, if it is known without computing it;
            else None.
        tasks: names of the tasks in the order of `weights`; None for the step's order.
    """

    gradient: Gradient
    weights: Tensor
    cosines: Tensor | None = None
    squared_norm: Tensor | None = None
    tasks: tuple[str, ...] | None = None


class RunningMean:
    """Computes `sum_i f_i g_i / sum_i f_i` for factors that are not negative.

    Gradients are added one at a time, before later factors are known, so that a softmax over all
    tasks needs the memory of one gradient only. What is stored is the mean of the gradients so far.
    """

    def __init__(self) -> None:
        self._mean: Gradient = []
        self._factors: dict[str, Tensor] = {}
        self._sum: Tensor | None = None
        self._squared_norm: Tensor | None = None

    def add(self, gradient: BodyGradient, factor: Tensor | float) -> None:
        """Add a gradient, which is consumed, with its factor, a scalar.

        Raises:
            ValueError: the factor is no scalar, or it is negative.
        """
        factor = _scalar(gradient, factor)
        if is_cpu(factor.device) and float(factor) < 0:
            raise ValueError(
                f"the factor of task {gradient.task.name} is {float(factor)}, and a mean's cannot "
                "be negative; use RunningSum"
            )
        # a device is not waited for: a step that is not finite is skipped
        factor = torch.where(factor < 0, math.nan, factor)
        self._factors[gradient.task.name] = factor
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
        """Return the mean of all that was added; `cosines` are put into the step's record."""
        factors = torch.stack(list(self._factors.values()))
        weights = factors / factors.sum()
        return Mixed(self._mean, weights, cosines, self._squared_norm, tuple(self._factors))


class RunningSum:
    """Computes `sum_i alpha_i g_i` for any weights, which need not sum to 1."""

    def __init__(self) -> None:
        self._sum: Gradient = []
        self._weights: dict[str, Tensor] = {}

    def add(self, gradient: BodyGradient, weight: Tensor | float) -> None:
        """Add a gradient, which is consumed, with its weight, a scalar.

        Raises:
            ValueError: the weight is no scalar.
        """
        weight = _scalar(gradient, weight)
        values = gradient.take()
        self._sum = self._sum or [None] * len(values)
        self._weights[gradient.task.name] = weight
        add_scaled_(self._sum, values, weight)

    def cosine(self, direction: BodyGradient) -> Tensor:
        """Return the cosine of the sum so far with `direction`, a scalar; 0 if a norm is 0."""
        body, device = direction.body, direction.loss.device
        product = body.total(dot(direction.values, self._sum, body.product_dtype, device))
        squared = body.total(dot(self._sum, self._sum, body.product_dtype, device))
        return cosine_of(product, direction.squared_norm, squared)

    def mixed(self, cosines: Tensor | None = None) -> Mixed:
        """Return the sum of all that was added; `cosines` are put into the step's record."""
        weights = torch.stack(list(self._weights.values()))
        return Mixed(self._sum, weights, cosines, tasks=tuple(self._weights))


def weighted_mean(gradients: Iterable[BodyGradient], factors: Tensor) -> Mixed:
    """Return `sum_i f_i g_i / sum_i f_i` for factors `(tasks,)` known before the gradients."""
    mean = RunningMean()
    for index, gradient in enumerate(gradients):
        mean.add(gradient, factors[index])
    return mean.mixed()


def weighted_sum(gradients: Iterable[BodyGradient], weights: Tensor) -> Mixed:
    """Return `sum_i alpha_i g_i` for weights `(tasks,)` known before the gradients are added."""
    total = RunningSum()
    for index, gradient in enumerate(gradients):
        total.add(gradient, weights[index])
    return total.mixed()


def _scalar(gradient: BodyGradient, value: Tensor | float) -> Tensor:
    """Return a gradient's weight as a scalar tensor on the gradient's device."""
    scalar = torch.as_tensor(value, device=gradient.loss.device)
    if scalar.shape != ():
        raise ValueError(
            f"the weight of task {gradient.task.name} has shape {tuple(scalar.shape)}, must be a "
            "scalar"
        )
    return scalar
