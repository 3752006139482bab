"""Sums and gathers over the processes that train the same model on shares of each batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tartan.core.gradients import Gradient
from tartan.core.task import Batch


@dataclass(frozen=True)
class Summed:
    """A gradient and a loss, each the sum over processes of their shares.

    Attributes:
        gradient: an entry for each parameter; None if the task reaches the parameter on no process.
        loss: a scalar.
    """

    gradient: Gradient
    loss: Tensor


class Processes:
    """The processes of a run, which all call the same methods in the same order; here, only one.

    A single process's sums are its own values. Subclasses sum over several.

    Attributes:
        overlaps: whether sums run in the background, during the next task's pass.
        summed_bytes: size of what was summed or gathered so far [bytes].
    """

    overlaps: bool = False
    summed_bytes: int = 0

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """Begin to sum a gradient and a loss; return a function that waits for the sum.

        Args:
            key: identifies the sum; the parameters that it reaches are the same in every step.
            parameters: the parameters of `gradient`'s entries.
            gradient: this process's share, which is consumed.
            loss: this process's share, a scalar.
        """
        summed = Summed(gradient, loss)
        return lambda: summed

    def gather(
        self, key: Hashable, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        """Join the processes' parts of a batch, in the order of its micro-batches.

        Args:
            key: identifies the parts; their type, and their shape except for `n`, are the same in
                every step.
            parts: a tensor of shape `(n, ...)` for each micro-batch of this process.
            batch: this process's share of the batch.
            sizes: `n` of every micro-batch of all processes.

        Returns:
            Shape `(sum of n, ...)`, the same on every process.
        """
        return torch.cat(list(parts))

    def adding_changes(self, tensors: Sequence[Tensor]) -> AbstractContextManager[object]:
        """Add up the processes' changes of tensors inside of the `with` block."""
        return nullcontext()
