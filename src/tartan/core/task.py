"""A task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

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


@dataclass(frozen=True)
class HeadInputs:
    """What a head reads of a whole batch: `features`, `(n, hidden)`, and `targets`, `(n,)`."""

    features: Tensor
    targets: Tensor


@dataclass
class _Pinned:
    """Tensors that a DataLoader copies to page-locked memory, wherever they are in the fields."""

    def pin_memory(self) -> Self:
        """Return a copy in page-locked memory, from which a GPU copies without waiting."""
        pinned = {
            each.name: pin_memory(getattr(self, each.name))  # type: ignore[no-untyped-call]
            for each in fields(self)
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
class Batch(_Pinned):
    """The examples of one task in one step, in micro-batches that bound the memory.

    Attributes:
        micro_batches: of several processes, those of this one.
        examples: number of examples, on all processes.
        tokens: number of tokens, on all processes; 0 for images.
        padding: number of positions without a token, on all processes; 0 for images.
        numbers: indices of `micro_batches` among those of all processes, ascending.
        units_of_all: number of units of each micro-batch of all processes.
        examples_of_all: number of examples, likewise.
        fillers: micro-batches of additional passes that do not count, where the processes have to
            take equally many: they gather a sharded layer's parameters together.
    """

    micro_batches: Sequence[MicroBatch]
    examples: int
    tokens: int = 0
    padding: int = 0
    numbers: Sequence[int] | None = None
    units_of_all: Sequence[int] = ()
    examples_of_all: Sequence[int] = ()
    fillers: Sequence[MicroBatch] = ()

    def __post_init__(self) -> None:
        if self.numbers is None:  # this process has all
            self.numbers = list(range(len(self.micro_batches)))
            self.units_of_all = [part.units for part in self.micro_batches]
            self.examples_of_all = [part.examples for part in self.micro_batches]

    def only(self, numbers: Sequence[int]) -> Batch:
        """Return the share of a process that has the micro-batches at `numbers`, ascending."""
        parts = [self.micro_batches[number] for number in numbers]
        return replace(self, micro_batches=parts, numbers=list(numbers))

    @property
    def numbered(self) -> Iterator[tuple[int, MicroBatch]]:
        """The micro-batches of this process, with their indices in the whole batch."""
        assert self.numbers is not None
        return zip(self.numbers, self.micro_batches, strict=True)

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
