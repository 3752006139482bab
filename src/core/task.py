"""A task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

Inputs = Mapping[str, Any]


class Objective(Protocol):
    """A loss that is a mean over `n` units: labelled examples, or masked tokens, of a batch.

    `Inputs` are those of a micro-batch.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """What the head reads, from the shared body: shape `(n, hidden)`."""
        ...

    def targets(self, inputs: Inputs) -> Tensor:
        """What the head should say of each unit: shape `(n,)`."""
        ...

    def owners(self, inputs: Inputs) -> Tensor:
        """The example, by its place in the micro-batch, that each unit belongs to: shape `(n,)`."""
        ...

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Each unit's loss, shape `(n,)`; a head may be tied to `body`."""
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

    `inputs` are tensors by name; `units` is the number of units (see `Objective`) they hold,
    `examples` that of the examples.
    """

    inputs: Inputs
    units: int
    examples: int

    def pin_memory(self) -> MicroBatch:
        """In page-locked memory, from which a GPU copies without waiting (a DataLoader asks)."""
        inputs = {k: v.pin_memory() if isinstance(v, Tensor) else v for k, v in self.inputs.items()}
        return MicroBatch(inputs, self.units, self.examples)


@dataclass
class Batch:
    """What the optimiser sees of one task in one step, in parts that bound the memory.

    `examples`, `tokens` and `padding` (positions that hold no token; both 0 where the modality has
    none) count what the step costs.
    """

    micro_batches: Sequence[MicroBatch]
    examples: int
    tokens: int = 0
    padding: int = 0

    def pin_memory(self) -> Batch:
        """See `MicroBatch.pin_memory`."""
        parts = [part.pin_memory() for part in self.micro_batches]
        return Batch(parts, self.examples, self.tokens, self.padding)

    @property
    def units(self) -> int:
        """Units over all micro-batches; the task's loss is the mean over them."""
        return sum(part.units for part in self.micro_batches)
