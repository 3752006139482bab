"""What a step needs of the other processes that train the same model on shares of its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from src.core.backward import backward
from src.core.gradients import Gradient, put_gradient
from src.core.row_gradients import rows_in_place
from src.core.task import Batch


@dataclass(frozen=True)
class Summed:
    """A gradient and a loss, each the sum over processes of their shares.

    Attributes:
        gradient: an entry a parameter, None where the task reaches the parameter on no process.
        loss: a scalar.
    """

    gradient: Gradient
    loss: Tensor


class Processes(Protocol):
    """The processes of a run, each of which calls the same methods in the same order."""

    @property
    def overlaps(self) -> bool:
        """Whether a sum takes time, in which the next task's pass can run."""
        ...

    def begin_sum(
        self, name: str, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """Begin to sum a task's gradient and loss; the function that is returned waits for it.

        Args:
            name: the task's; the parameters it reaches are the same in every step.
            parameters: what the entries of `gradient`, which is consumed, belong to.
        """
        ...

    def backward(
        self, loss: Tensor, body: Sequence[nn.Parameter], head: Sequence[nn.Parameter]
    ) -> None:
        """Add the loss's gradient to `.grad` of `body` and `head`, which is all that it reaches."""
        ...

    def total(self, products: Tensor) -> Tensor:
        """Inner products over the whole body, from those over the part of it that is here."""
        ...

    def put(self, parameters: Sequence[nn.Parameter], gradient: Gradient) -> None:
        """Hand a gradient, of the part of the body that is here, to the optimiser."""
        ...

    def gather(
        self, name: str, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """Join what the processes have of a batch, in the order of its micro-batches.

        Args:
            name: of what is gathered; its type and its shape but for `n` are the same in every
                step.
            parts: a tensor of shape `(n, ...)` for each micro-batch of `batch` that is here.
            sizes: `n` of every micro-batch, here or elsewhere.

        Returns:
            Shape `(sum of n, ...)`, the same on every process.
        """
        ...


class WholeBody:
    """What is the same wherever each process holds the whole body."""

    def backward(
        self, loss: Tensor, body: Sequence[nn.Parameter], head: Sequence[nn.Parameter]
    ) -> None:
        with rows_in_place():
            backward(loss, [*body, *head])

    def total(self, products: Tensor) -> Tensor:
        return products

    def put(self, parameters: Sequence[nn.Parameter], gradient: Gradient) -> None:
        put_gradient(parameters, gradient)


class Alone(WholeBody):
    """The only process."""

    overlaps = False

    def begin_sum(
        self, name: str, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        summed = Summed(gradient, loss)
        return lambda: summed

    def gather(
        self, name: str, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        return torch.cat(list(parts))
