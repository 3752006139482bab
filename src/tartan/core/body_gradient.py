"""Defines the gradient of a task's loss with respect to the body: products, norms and cosines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tartan.core.body import SharedBody
from tartan.core.gradients import Gradient, cosine_of, dot
from tartan.core.processes import Summed
from tartan.core.task import Task


@dataclass(frozen=True)
class HeadInputs:
    """What a head reads of a whole batch.

    Attributes:
        features: `(n, hidden)`.
        targets: `(n,)`.
    """

    features: Tensor
    targets: Tensor


class BodyGradient:
    """The gradient of a task's loss with respect to the shared body, summed over processes.

    Args:
        body: the body.
        task: the task of the loss.
        arrive: waits for the sum over processes, called when the gradient is first used. Its
            entries are those of the body's parameters and, after these, the head's.
        body_entries: number of the body's; None for all.
        read: what the task's head has read of the batch; None where it was not kept.
    """

    def __init__(
        self,
        body: SharedBody,
        task: Task,
        arrive: Callable[[], Summed],
        body_entries: int | None = None,
        read: HeadInputs | None = None,
    ) -> None:
        self.body, self.task, self.read = body, task, read
        self._arrive: Callable[[], Summed] | None = arrive
        self._body_entries = body_entries
        self._values: Gradient | None = None
        self._of_head: Gradient = []
        self._loss: Tensor | None = None

    @property
    def loss(self) -> Tensor:
        """The task's mean loss over the whole batch, a scalar."""
        self._wait()
        assert self._loss is not None
        return self._loss

    @property
    def values(self) -> Gradient:
        """The tensors, an entry for each of the body's parameters; not to be changed.

        To clip or scale a gradient, put the factor into its weight: its norm is known by then.

        Raises:
            ValueError: the tensors were handed over by `take`.
        """
        self._wait()
        if self._values is None:
            raise ValueError(f"the gradient of task {self.task.name} has been mixed already")
        return self._values

    @property
    def of_head(self) -> Gradient:
        """The gradient with respect to the head's parameters; empty where none was asked for."""
        self._wait()
        return self._of_head

    @cached_property
    def squared_norm(self) -> Tensor:
        """`||g||^2` over the whole body, a scalar; after `take` only if it was asked for before."""
        return inner_product(self, self)

    def take(self) -> Gradient:
        """Hand over the tensors, which the caller may change; this gradient no longer has them.

        So a step holds no more gradients than it combines.
        """
        values, self._values = self.values, None
        return values

    def _wait(self) -> None:
        arrive, self._arrive = self._arrive, None
        if arrive is not None:
            summed, entries = arrive(), self._body_entries
            whole = len(summed.gradient) if entries is None else entries
            self._values, self._of_head = summed.gradient[:whole], summed.gradient[whole:]
            self._loss = summed.loss


def inner_product(left: BodyGradient, right: BodyGradient) -> Tensor:
    """Return `<left, right>` over the whole body, a scalar."""
    return left.body.total(_product(left, right))


def cosine(left: BodyGradient, right: BodyGradient) -> Tensor:
    """Return the cosine over the whole body, a scalar; 0 if a norm is 0."""
    return cosine_of(inner_product(left, right), left.squared_norm, right.squared_norm)


def gramian(gradients: Sequence[BodyGradient]) -> Tensor:
    """Return all inner products `G_ij = <g_i, g_j>`, shape `(tasks, tasks)`, symmetric."""
    count = len(gradients)
    upper = {
        (i, j): _product(gradients[i], gradients[j]) for i in range(count) for j in range(i, count)
    }
    rows = [torch.stack([upper[min(i, j), max(i, j)] for j in range(count)]) for i in range(count)]
    return gradients[0].body.total(torch.stack(rows))


def products(rows: Sequence[BodyGradient], columns: Iterable[BodyGradient]) -> Tensor:
    """Return `<g_i, g'_j>`, shape `(rows, columns)`.

    Args:
        rows: the gradients `g_i`.
        columns: the gradients `g'_j`, consumed one at a time, so that one is in memory.
    """
    found = []
    for column in columns:
        found.append(torch.stack([_product(row, column) for row in rows]))
        column.take()
    return rows[0].body.total(torch.stack(found, dim=1))


def _product(left: BodyGradient, right: BodyGradient) -> Tensor:
    """Return the inner product over this process's part of the body."""
    return dot(left.values, right.values, left.body.product_dtype, left.loss.device)
