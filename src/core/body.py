"""Defines the shared body `theta`: its backward passes, and gradients of all its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from src.core.backward import backward
from src.core.gradients import Gradient, put_gradient
from src.core.task import Batch, MicroBatch


class Body(Protocol):
    """The shared body as a step sees it, whether its parameters are whole or sharded.

    Attributes:
        module: the body itself.
        product_dtype: the type in which inner products are accumulated.
    """

    module: nn.Module
    product_dtype: torch.dtype

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Return the trained parameters; a `Gradient` has an entry for each."""
        ...

    def backward(
        self, loss: Tensor, into: Sequence[nn.Parameter], retain_graph: bool = False
    ) -> None:
        """Add the loss's gradient to `.grad` of `into`: the body's parameters, a head's or both."""
        ...

    def fill_up(self, batch: Batch, loss_of: Callable[[MicroBatch], Tensor]) -> None:
        """Take passes that keep this process in step with others, and change nothing."""
        ...

    def total(self, products: Tensor) -> Tensor:
        """Return inner products over the whole body, from those over this process's part of it."""
        ...

    def put(self, gradient: Gradient) -> None:
        """Hand the gradient of this process's part of the body to the optimiser."""
        ...


class WholeBody:
    """A body whose parameters are all on this process; other processes have replicas."""

    def __init__(self, module: nn.Module, product_dtype: torch.dtype = torch.float32) -> None:
        self.module, self.product_dtype = module, product_dtype

    @property
    def parameters(self) -> list[nn.Parameter]:
        """See `Body.parameters`."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def backward(
        self, loss: Tensor, into: Sequence[nn.Parameter], retain_graph: bool = False
    ) -> None:
        """See `Body.backward`."""
        backward(loss, into, retain_graph=retain_graph)

    def fill_up(self, batch: Batch, loss_of: Callable[[MicroBatch], Tensor]) -> None:
        """Do nothing: no other process waits for a pass."""

    def total(self, products: Tensor) -> Tensor:
        """Return the products, which are over the whole body already."""
        return products

    def put(self, gradient: Gradient) -> None:
        """See `Body.put`."""
        put_gradient(self.parameters, gradient)
