"""A task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor, nn

Inputs = Mapping[str, Any]


class Objective(Protocol):
    """A loss that is a mean over `n` units: labelled examples, or masked tokens, of a batch.

    `Inputs` are those of a micro-batch.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return what the head reads, from the shared body: shape `(n, hidden)`."""
        ...

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the target of each unit: shape `(n,)`."""
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
class Share:
    """The micro-batches of a batch that a process has, and the sizes of all of them.

    Attributes:
        numbers: places of the micro-batches that are here, ascending.
        units: of every micro-batch, here or elsewhere.
        examples: likewise.
    """

    numbers: tuple[int, ...]
    units: tuple[int, ...]
    examples: tuple[int, ...]


@dataclass
class Batch:
    """The examples of one task in one step, in parts that bound the memory.

    `examples`, `tokens` and `padding` (positions that hold no token; both 0 where the modality has
    none) count what the step costs, on all processes. `share` says which micro-batches are here;
    None where all are.
    """

    micro_batches: Sequence[MicroBatch]
    examples: int
    tokens: int = 0
    padding: int = 0
    share: Share | None = None

    def pin_memory(self) -> Batch:
        """See `MicroBatch.pin_memory`."""
        return replace(self, micro_batches=[part.pin_memory() for part in self.micro_batches])

    def only(self, numbers: Sequence[int]) -> Batch:
        """The share of a process: the micro-batches at `numbers`, which must ascend."""
        share = Share(
            numbers=tuple(numbers),
            units=tuple(part.units for part in self.micro_batches),
            examples=tuple(part.examples for part in self.micro_batches),
        )
        return replace(self, micro_batches=[self.micro_batches[i] for i in numbers], share=share)

    @property
    def numbered(self) -> Iterator[tuple[int, MicroBatch]]:
        """The micro-batches that are here, with their places among all."""
        numbers = range(len(self.micro_batches)) if self.share is None else self.share.numbers
        return zip(numbers, self.micro_batches, strict=True)

    @property
    def units_of_all(self) -> tuple[int, ...]:
        """Units of every micro-batch, on whatever process."""
        here = tuple(part.units for part in self.micro_batches)
        return here if self.share is None else self.share.units

    @property
    def examples_of_all(self) -> tuple[int, ...]:
        """Examples of every micro-batch, on whatever process."""
        here = tuple(part.examples for part in self.micro_batches)
        return here if self.share is None else self.share.examples

    @property
    def units(self) -> int:
        """Units over all micro-batches of all processes; the task's loss is the mean over them."""
        return sum(self.units_of_all)


@dataclass
class StepBatch:
    """All that one optimiser step sees.

    Attributes:
        step: counted from 0 within the stage.
        tasks: each task's batch, by name.
        meta: the end task's validation batch `B_val`, where there is a meta-gradient.
        meta_head: training examples of the end task that are not in its batch, where the meta head
            is fitted on such.
        second: batches drawn independently of `tasks`, where the weighting needs such.
        unsized: for tasks that share one batch, in parts known only when the step begins: what
            makes so many examples a task's batch.
    """

    step: int
    tasks: dict[str, Batch]
    meta: Batch | None = None
    meta_head: Batch | None = None
    second: dict[str, Batch] | None = None
    unsized: dict[str, Callable[[int], Batch]] = field(default_factory=dict)

    def pin_memory(self) -> StepBatch:
        """See `MicroBatch.pin_memory`."""
        second = self.second
        return replace(
            self,
            tasks={name: batch.pin_memory() for name, batch in self.tasks.items()},
            meta=None if self.meta is None else self.meta.pin_memory(),
            meta_head=None if self.meta_head is None else self.meta_head.pin_memory(),
            second=None if second is None else {n: b.pin_memory() for n, b in second.items()},
        )
