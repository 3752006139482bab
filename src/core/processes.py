"""The processes that train the same model on shares of each batch: their sums and gathers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from src.core.gradients import Gradient
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

    @property
    def summed_bytes(self) -> int:
        """Bytes of what was summed or gathered so far."""
        ...

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """Begin to sum a gradient and a loss; the function that is returned waits for the sum.

        Args:
            key: of what is summed; the parameters it reaches are the same in every step.
            parameters: what the entries of `gradient`, which is consumed, belong to.
        """
        ...

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """Join what the processes have of a batch, in the order of its micro-batches.

        Args:
            key: of what is gathered; its type and its shape but for `n` are the same in every step.
            parts: a tensor of shape `(n, ...)` for each micro-batch of `batch` that is here.
            sizes: `n` of every micro-batch, here or elsewhere.

        Returns:
            Shape `(sum of n, ...)`, the same on every process.
        """
        ...

    def average_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the processes."""
        ...


class SingleProcess:
    """The only process: a sum is what it is given."""

    overlaps = False
    summed_bytes = 0

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """See `Processes.begin_sum`."""
        summed = Summed(gradient, loss)
        return lambda: summed

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """See `Processes.gather`."""
        return torch.cat(list(parts))

    def average_(self, tensors: Sequence[Tensor]) -> None:
        """Change nothing."""
