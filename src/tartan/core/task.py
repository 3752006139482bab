"""Defines a task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

from torch import Tensor, nn
from torch.utils.data._utils.pin_memory import pin_memory

Inputs = Mapping[str, Any]


class Objective(Protocol):
    """A loss that is a mean over the `n` units of a batch: labelled examples, or masked tokens.

    `Inputs` are those of a micro-batch.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return what the head reads, computed by the shared body, shape `(n, hidden)`."""
        ...

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the target of each unit, shape `(n,)`."""
        ...

    def owners(self, inputs: Inputs) -> Tensor:
        """Return the index of each unit's example in the micro-batch, shape `(n,)`."""
        ...

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each unit, shape `(n,)`; a head may be tied to `body`."""
        ...


@dataclass
class Task:
    """An objective and its own head `phi_i`; the body `theta` is shared by all tasks of a run."""

    name: str
    objective: Objective
    head: nn.Module


@dataclass
class _Pinned:
    """Tensors that a DataLoader copies to page-locked memory, wherever they are in the fields."""

    def pin_memory(self) -> Self:
        """Return a copy in page-locked memory, from which a GPU copies without waiting."""
        pinned = {
            own.name: pin_memory(getattr(self, own.name))  # type: ignore[no-untyped-call]
            for own in fields(self)
        }
        return replace(self, **pinned)


@dataclass
class MicroBatch(_Pinned):
    """The part of a batch that goes through the body at once.

    Attributes:
        inputs: tensors by name.
        units: number of units (see `Objective`).
        examples: number of examples.
    """

    inputs: Inputs
    units: int
    examples: int

    @property
    def positions(self) -> int:
        """Number of token positions, padding included; of examples where inputs are not texts."""
        ids = self.inputs.get("input_ids")
        return self.examples if ids is None else int(ids.numel())


@dataclass
class OwnMicroBatches:
    """Which micro-batches of a batch a process has, and the sizes of all of them.

    Attributes:
        numbers: indices of this process's micro-batches, ascending.
        units: number of units of every micro-batch of all processes.
        examples: number of examples, likewise.
    """

    numbers: tuple[int, ...]
    units: tuple[int, ...]
    examples: tuple[int, ...]


@dataclass
class Batch(_Pinned):
    """The examples of one task in one step, in parts that bound the memory.

    Attributes:
        micro_batches: the parts; of several processes, those of this one.
        examples: number of examples, on all processes.
        tokens: number of tokens, on all processes; 0 for images.
        padding: number of positions without a token, on all processes; 0 for images.
        share: which micro-batches this process has; None if all of them.
        fillers: micro-batches of additional passes that do not count, where the processes have to
            take equally many: they gather a sharded layer's parameters together.
    """

    micro_batches: Sequence[MicroBatch]
    examples: int
    tokens: int = 0
    padding: int = 0
    share: OwnMicroBatches | None = None
    fillers: Sequence[MicroBatch] = ()

    def only(self, numbers: Sequence[int]) -> Batch:
        """Return a process's share of the batch.

        Args:
            numbers: indices of its micro-batches, ascending.
        """
        share = replace(self._own, numbers=tuple(numbers))
        return replace(self, micro_batches=[self.micro_batches[i] for i in numbers], share=share)

    @property
    def _own(self) -> OwnMicroBatches:
        parts = self.micro_batches
        return self.share or OwnMicroBatches(
            numbers=tuple(range(len(parts))),
            units=tuple(part.units for part in parts),
            examples=tuple(part.examples for part in parts),
        )

    @property
    def numbered(self) -> Iterator[tuple[int, MicroBatch]]:
        """Yield this process's micro-batches, with their indices in the whole batch."""
        return zip(self._own.numbers, self.micro_batches, strict=True)

    @property
    def units_of_all(self) -> tuple[int, ...]:
        """Number of units of every micro-batch, on all processes."""
        return self._own.units

    @property
    def examples_of_all(self) -> tuple[int, ...]:
        """Number of examples of every micro-batch, on all processes."""
        return self._own.examples

    @property
    def units(self) -> int:
        """Number of units over all processes' micro-batches; the task's loss is their mean."""
        return sum(self.units_of_all)


@dataclass
class StepBatch(_Pinned):
    """All batches of one optimiser step.

    Attributes:
        step: number of the step in its stage, from 0.
        tasks: each task's batch, by name.
        meta_batch: the end task's validation batch `B_val`; None without a meta-gradient.
        meta_head_batch: end-task training examples outside the end task's batch, on which the meta
            head is fitted; None if it is fitted on that batch.
        second: batches drawn independently of `tasks`; None unless the weighting needs them.
        unsized: by task, for tasks that share one batch whose division is known only when the step
            begins: a function that makes a batch of that many examples.
    """

    step: int
    tasks: dict[str, Batch]
    meta_batch: Batch | None = None
    meta_head_batch: Batch | None = None
    second: dict[str, Batch] | None = None
    unsized: dict[str, Callable[[int], Batch]] = field(default_factory=dict)
