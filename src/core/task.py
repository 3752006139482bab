"""A task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

Inputs = Mapping[str, Any]


class Objective(Protocol):
    """A loss that is a mean over `n` units: labelled examples, or masked tokens, of a batch."""

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """What the head reads, from the shared body: shape `(n, hidden)`."""
        ...

    def targets(self, inputs: Inputs) -> Tensor:
        """What the head should say of each unit: shape `(n,)`."""
        ...

    def loss(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Mean loss over the `n` units, a scalar; a head may be tied to `body`."""
        ...


@dataclass
class Task:
    """An objective and its own head `phi_i`; the body `theta` is shared by all tasks of a run."""

    name: str
    objective: Objective
    head: nn.Module


@dataclass
class MicroBatch:
    """The part of a batch that goes through the body at once.

    `inputs` are tensors by name; `units` is the number of units (see `Objective`) they hold.
    """

    inputs: Inputs
    units: int


@dataclass
class Batch:
    """What the optimiser sees of one task in one step, in parts that bound the memory.

    `examples` and `tokens` (0 where the modality has none) count what the step costs.
    """

    micro_batches: Sequence[MicroBatch]
    examples: int
    tokens: int = 0

    @property
    def units(self) -> int:
        """Units over all micro-batches; the task's loss is the mean over them."""
        return sum(part.units for part in self.micro_batches)
