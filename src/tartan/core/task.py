"""A task `T = {L(.), D}`: an objective, its head, and its batches (paper, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol, Self

from torch import Tensor, nn
from torch.utils.data._utils.pin_memory import pin_memory

Inputs = Mapping[str, Any]


class Objective(Protocol):
    """A loss that is a mean over the `n` units of a batch: labelled examples, or masked tokens.

    `Inputs` are those of a micro-batch.
    """

    def features(self, body: nn.Module, inputs: Inputs) -> Tensor:
        """Return what the head reads, computed by the shared body, shape `(n, hidden)`."""

    def targets(self, inputs: Inputs) -> Tensor:
        """Return the target of each unit, shape `(n,)`."""

    def losses(self, body: nn.Module, head: nn.Module, features: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each unit, shape `(n,)`; a head may be tied to `body`."""


@dataclass
class Task:
    """An objective and its own head `phi_i`; the body `theta` is shared by all tasks of a run."""

    name: str
    objective: Objective
    head: nn.Module


class HeadInputs(NamedTuple):
    """What a head reads of a whole batch: `features`, `(n, hidden)`, and `targets`, `(n,)`."""

    features: Tensor
    targets: Tensor


@dataclass
class _Pinned:
    def pin_memory(self) -> Self:
        """Return a copy in page-locked memory, from which a GPU copies without waiting."""
        pinned = {
            each.name: pin_memory(getattr(self, each.name))  # type: ignore[no-untyped-call]
            for each in fields(self)
        }
        return replace(self, **pinned)


@dataclass
class MicroBatch(_Pinned):
    """The part of a batch that goes through the body at once; `inputs` are tensors by name."""

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
    """The examples of one task in one step, in micro-batches that bound the memory."""

    micro_batches: Sequence[MicroBatch]  # of several processes, those of this one
    examples: int  # number, on all processes
    tokens: int = 0  # number, on all processes; 0 for images
    padding: int = 0  # number of positions without a token, on all processes; 0 for images
    numbers: Sequence[int] | None = None  # of `micro_batches` among all processes', ascending
    units_of_all: Sequence[int] = ()  # number in each micro-batch of all processes
    # for further passes that do not count: processes gather a sharded layer's parameters together
    fillers: Sequence[MicroBatch] = ()

    def __post_init__(self) -> None:
        if self.numbers is None:  # this process has all
            self.numbers = list(range(len(self.micro_batches)))
            self.units_of_all = [part.units for part in self.micro_batches]

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
    """All batches of one optimiser step; those of tasks are by name."""

    step: int  # its number in the stage, from 0
    tasks: dict[str, Batch]
    meta_batch: Batch | None = None  # of the end task's validation examples, `B_val`
    meta_head_batch: Batch | None = None  # on which to fit the meta head; None: the end task's
    second: dict[str, Batch] | None = None  # drawn independently of `tasks`
    # of tasks that share a batch by weights of the step: makes a batch of that many examples
    unsized: dict[str, Callable[[int], Batch]] = field(default_factory=dict)
