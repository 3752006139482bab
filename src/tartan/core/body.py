"""Defines the shared body `theta`: its backward passes, and gradients of all its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tartan.core.backward import backward
from tartan.core.gradients import Gradient, put_gradient
from tartan.core.task import Batch, MicroBatch


class SharedBody:
    """The shared body as a step sees it; here, its parameters are all on this process.

    Other processes have replicas. Subclasses have shards of it, or other backward passes.

    Attributes:
        module: the body itself.
        product_dtype: the type in which inner products are accumulated.
    """

    def __init__(self, module: nn.Module, product_dtype: torch.dtype = torch.float32) -> None:
        self.module, self.product_dtype = module, product_dtype

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Return the trained parameters; a `Gradient` has an entry for each."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def backward(
        self, loss: Tensor, into: Sequence[nn.Parameter], retain_graph: bool = False
    ) -> None:
        """Add the loss's gradient to `.grad` of `into`: the body's parameters, a head's or both."""
        backward(loss, into, retain_graph=retain_graph)

    def fill_up(self, batch: Batch, loss_of: Callable[[MicroBatch], Tensor]) -> None:
        """Take passes that keep this process in step with others, and change nothing; here none."""

    def total(self, products: Tensor) -> Tensor:
        """Return inner products over the whole body, from those over this process's part of it."""
        return products

    def put(self, gradient: Gradient) -> None:
        """Hand the gradient of this process's part of the body to the optimiser."""
        put_gradient(self.parameters, gradient)
