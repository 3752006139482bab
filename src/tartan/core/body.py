"""The body `theta` that all tasks share, and the gradients of their losses with respect to it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tartan.core.device import without_autocast
from tartan.core.gradients import Gradient, cosine_of, dot, put_gradient
from tartan.core.task import Batch, HeadInputs, MicroBatch, Task


class Summed(NamedTuple):
    """A gradient and a loss, a scalar, each the sum over processes of their shares."""

    gradient: Gradient
    loss: Tensor


class SharedBody:
    """The shared body as a step sees it; here this process trains it alone.

    Subclasses sum over several processes, which call the same methods in the same order.
    Inner products are accumulated in `product_dtype`.
    """

    overlaps: bool = False  # whether sums over processes run during the next task's pass

    def __init__(self, module: nn.Module, product_dtype: torch.dtype = torch.float32) -> None:
        self.module, self.product_dtype = module, product_dtype

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The trained parameters; a gradient has an entry for each."""
        return [p for p in self.module.parameters() if p.requires_grad]

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    def backward(self, loss: Tensor, into: Sequence[nn.Parameter]) -> None:
        """Add the loss's gradient to `.grad` of `into`: the body's parameters, a head's or both.

        `torch.autograd.grad` would need a second buffer to add micro-batches up.
        """
        with without_autocast(loss.device):
            torch.autograd.backward(loss, inputs=into)

    def fill_up(self, batch: Batch, loss_of: Callable[[MicroBatch], Tensor]) -> None:
        """Take passes that keep this process in step with others, and change nothing; here none."""

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """Begin to sum a gradient, which is consumed, and a loss; return what waits for the sum.

        Sums of the same `key` reach the same parameters in every step.
        """
        summed = Summed(gradient, loss)
        return lambda: summed

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """Return all processes' parts of a batch, `(sum of n, ...)`, in its micro-batches' order.

        `parts` has a tensor `(n, ...)` for each micro-batch of this process's share, `batch`;
        `sizes` has `n` of every micro-batch of all processes.
        """
        return torch.cat(list(parts))

    def adding_changes(self, tensors: Sequence[Tensor]) -> AbstractContextManager[object]:
        """Add up the processes' changes of tensors inside of the `with` block."""
        return nullcontext()

    def total(self, products: Tensor) -> Tensor:
        """Return inner products over the whole body, from those over this process's part of it."""
        return products

    def put(self, gradient: Gradient) -> None:
        """Set `.grad` of this process's part of the body, for the optimiser."""
        put_gradient(self.parameters, gradient)


@dataclass(eq=False)
class BodyGradient:
    """The gradient `g_i` of a task's loss with respect to the body, summed over processes.

    `arrive` waits for the sum, when the gradient is first used. Its first `body_entries` (or all)
    belong to the body's parameters, the others to the head's. `read` is what the head has read of
    the batch, if it was kept.
    """

    body: SharedBody
    task: Task
    arrive: Callable[[], Summed]
    body_entries: int | None = None
    read: HeadInputs | None = None
    taken: bool = False

    @cached_property
    def _summed(self) -> Summed:
        arrive = self.arrive
        del self.arrive  # it may hold the tensors, too
        return arrive()

    @property
    def loss(self) -> Tensor:
        """The task's mean loss over the whole batch, a scalar."""
        return self._summed.loss

    @property
    def values(self) -> Gradient:
        """The tensors, not to be changed; a ValueError after `take`."""
        if self.taken:
            raise ValueError(f"the gradient of task {self.task.name} has been mixed already")
        return self._summed.gradient[: self.body_entries]

    @property
    def of_head(self) -> Gradient:
        """The gradient with respect to the head's parameters; empty where none was asked for."""
        return [] if self.body_entries is None else self._summed.gradient[self.body_entries :]

    @cached_property
    def squared_norm(self) -> Tensor:
        """`||g||^2` over the whole body, a scalar; after `take` only if it was asked for before."""
        return self.body.total(_product(self, self))

    def take(self) -> Gradient:
        """Hand over the tensors, so that a step holds no more gradients than it combines."""
        values, self.taken = self.values, True
        self._summed.gradient[: self.body_entries] = [None] * len(values)
        return values


def cosine(left: BodyGradient, right: BodyGradient) -> Tensor:
    """Return the cosine over the whole body, a scalar; 0 if a norm is 0."""
    product = left.body.total(_product(left, right))
    return cosine_of(product, left.squared_norm, right.squared_norm)


def gramian(gradients: Sequence[BodyGradient]) -> Tensor:
    """Return all inner products `G_ij = <g_i, g_j>`, shape `(tasks, tasks)`, symmetric."""
    tasks = range(len(gradients))
    upper = {(i, j): _product(gradients[i], gradients[j]) for i in tasks for j in tasks[i:]}
    rows = [torch.stack([upper[min(i, j), max(i, j)] for j in tasks]) for i in tasks]
    return gradients[0].body.total(torch.stack(rows))


def products(rows: Sequence[BodyGradient], columns: Iterable[BodyGradient]) -> Tensor:
    """Return `<g_i, g'_j>`, shape `(rows, columns)`; columns are consumed one at a time."""
    by_column = []
    for column in columns:
        by_column.append(torch.stack([_product(row, column) for row in rows]))
        column.take()
    return rows[0].body.total(torch.stack(by_column, dim=1))


def _product(left: BodyGradient, right: BodyGradient) -> Tensor:
    """Return the inner product over this process's part of the body."""
    values = left.values
    others = values if left is right else right.values
    return dot(values, others, left.body.product_dtype, left.loss.device)


@contextmanager
def frozen_running_statistics(body: nn.Module) -> Iterator[None]:
    """Let passes normalise by their own batch without updating running statistics."""
    tracking = _tracking(body)
    for module in tracking:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in tracking:
            module.track_running_stats = True


def running_statistics(body: nn.Module) -> list[Tensor]:
    """Return the running means and variances, without those that are frozen."""
    statistics = [each for m in _tracking(body) for each in (m.running_mean, m.running_var)]
    return [each for each in statistics if each is not None]


def _tracking(body: nn.Module) -> list[_BatchNorm]:
    return [m for m in body.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
