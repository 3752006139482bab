"""Every pass through the body that training takes: the one place that obtains gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from src.core.alignment import example_alignments
from src.core.body import Body
from src.core.body_gradient import BodyGradient
from src.core.gradients import take_gradient
from src.core.processes import Processes, SingleProcess, Summed
from src.core.running_statistics import held_running_statistics
from src.core.task import Batch, Inputs, Task


@dataclass(frozen=True)
class Purpose:
    """The purpose of something in a step, by which its randomness and its cost are known.

    What is done for the meta-gradient has no task's name, so that it is told apart from every task,
    whatever that is called.
    """

    kind: Literal[
        "task", "alignments", "second_batch", "meta_gradient", "meta_features", "meta_head", "draws"
    ]
    task: str = ""

    def __str__(self) -> str:
        return self.task if self.kind == "task" else f"{self.kind} {self.task}".strip()


@dataclass(frozen=True)
class PassContext:
    """The processes, seeds and clocks that a step's passes run with.

    Attributes:
        processes: those that have the rest of each batch.
        seed: seeds what is drawn next, for a purpose and the number of a micro-batch.
        during: entered around all that is done for a purpose: clocks, accounts of its cost.
    """

    processes: Processes = field(default_factory=SingleProcess)
    seed: Callable[[Purpose, int], None] = lambda purpose, part: None
    during: Callable[[Purpose], AbstractContextManager[object]] = lambda purpose: nullcontext()


@dataclass(frozen=True)
class Read:
    """Features `(n, hidden)` that a head reads of a whole batch, and their targets `(n,)`."""

    features: Tensor
    targets: Tensor


@dataclass(frozen=True)
class Passed:
    """The results of a batch's passes beside the gradient.

    Attributes:
        loss: this process's share of the task's mean loss, a detached scalar.
        read: where it was asked for.
    """

    loss: Tensor
    read: Read | None = None


class Passes:
    """Takes batches through the body, micro-batch by micro-batch.

    A task's loss is the mean over the whole batch's units: each micro-batch counts by its units, so
    that the result does not depend on how the batch is split, and adds up over processes.

    Attributes:
        body: the shared body.
        parameters: those of it that are trained.
    """

    def __init__(self, body: Body, context: PassContext | None = None) -> None:
        self.body = body
        self._context = context or PassContext()
        self.parameters = body.parameters

    @property
    def processes(self) -> Processes:
        """Those that have the rest of each batch."""
        return self._context.processes

    def backward(
        self,
        purpose: Purpose,
        task: Task,
        batch: Batch,
        *,
        keep: bool = False,
        example_weights: Tensor | None = None,
    ) -> Passed:
        """Add the gradient of the task's mean loss to `.grad`; for a task's own purpose its head's.

        Args:
            keep: whether to keep what the head reads.
            example_weights: `(examples,)` of the whole batch; the body's gradient is then that of
                the weighted loss, the head's that of the plain one, whose value is returned.
        """
        trains_head = purpose.kind == "task"
        head = [p for p in task.head.parameters() if p.requires_grad and trains_head]
        by_part = None
        if example_weights is not None:
            by_part = torch.split(example_weights, list(batch.examples_of_all))
        losses, features, targets = [], [], []
        with self._doing(purpose), _untrained(task.head, not trains_head):
            for number, part in batch.numbered:
                self._context.seed(purpose, number)
                read, unit_losses = self._forward(task, part.inputs)
                loss = unit_losses.sum() / batch.units
                if by_part is None:
                    self.body.backward(loss, [*self.parameters, *head])
                else:
                    of_units = by_part[number][task.objective.owners(part.inputs)]
                    weighted = (unit_losses * of_units).sum() / batch.units
                    self.body.backward(weighted, self.parameters, retain_graph=True)
                    if head:
                        self.body.backward(loss, head)
                losses.append(loss.detach())
                if keep:
                    features.append(read.features.detach())
                    targets.append(read.targets)
            self.body.fill_up(batch, lambda part: self._forward(task, part.inputs)[1].sum())
        total = torch.stack(losses).sum() if losses else self.no_loss()
        return Passed(total, self._gathered(purpose, features, targets, batch) if keep else None)

    def begin(self, purpose: Purpose, task: Task, passed: Passed) -> Callable[[], Summed]:
        """Begin to sum over processes what `backward` has left; leaves `.grad` empty.

        The sum has an entry for each of the body's parameters and, for a task's own purpose, its
        head's.
        """
        head = trained(task.head) if purpose.kind == "task" else []
        parameters = [*self.parameters, *head]
        return self.processes.begin_sum(purpose, parameters, take_gradient(parameters), passed.loss)

    @torch.no_grad()
    def features(self, purpose: Purpose, task: Task, batch: Batch) -> Read:
        """Return what the task's head reads of a batch; no gradient is taken."""
        features, targets = [], []
        with self._doing(purpose):
            for number, part in batch.numbered:
                self._context.seed(purpose, number)
                features.append(task.objective.features(self.body.module, part.inputs))
                targets.append(task.objective.targets(part.inputs))
            self.body.fill_up(
                batch, lambda part: task.objective.features(self.body.module, part.inputs).sum()
            )
        return self._gathered(purpose, features, targets, batch)

    def alignments(
        self, task: Task, batch: Batch, direction: BodyGradient
    ) -> tuple[Tensor, Tensor]:
        """`<direction, grad l_j>` and number of units of each example, `(examples,)` both.

        Dropout is seeded as for the task's own pass (see `example_alignments`).
        """
        purpose, own = Purpose("alignments", task.name), Purpose("task", task.name)
        with self._doing(purpose):
            alignments, units = example_alignments(
                self.body.module, task, batch, direction.values,
                lambda number: self._context.seed(own, number),
            )  # fmt: skip
        gather, sizes = self.processes.gather, batch.examples_of_all
        return (
            gather((purpose, "alignments"), alignments, batch, sizes),
            gather((purpose, "units"), units, batch, sizes),
        )

    def losses(self, task: Task, inputs: Inputs) -> Tensor:
        """Each unit's loss in a micro-batch, shape `(n,)`."""
        return self._forward(task, inputs)[1]

    @contextmanager
    def drawing(self, purpose: Purpose) -> Iterator[None]:
        """Around what is drawn and computed without a pass: the same on every process."""
        with self._context.during(purpose):
            self._context.seed(purpose, 0)
            yield

    def no_loss(self) -> Tensor:
        """The loss of no examples, zero: that of a process that has none of a batch."""
        parameter = next(self.body.module.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        return torch.zeros((), dtype=dtype, device=parameter.device)

    def _forward(self, task: Task, inputs: Inputs) -> tuple[Read, Tensor]:
        """Return what the head reads, and each unit's loss."""
        features = task.objective.features(self.body.module, inputs)
        read = Read(features, task.objective.targets(inputs))
        return read, task.objective.losses(self.body.module, task.head, features, read.targets)

    @contextmanager
    def _doing(self, purpose: Purpose) -> Iterator[None]:
        """Only a task's own pass may enter the running statistics, with which evaluations work."""
        traces = purpose.kind == "task"
        held = nullcontext() if traces else held_running_statistics(self.body.module)
        with self._context.during(purpose), held:
            yield

    def _gathered(
        self, purpose: Purpose, features: Sequence[Tensor], targets: Sequence[Tensor], batch: Batch
    ) -> Read:
        gather, sizes = self.processes.gather, batch.units_of_all
        return Read(
            gather((purpose, "features"), features, batch, sizes),
            gather((purpose, "targets"), targets, batch, sizes),
        )


def trained(head: nn.Module) -> list[nn.Parameter]:
    """A head's parameters that are trained."""
    return [p for p in head.parameters() if p.requires_grad]


@contextmanager
def _untrained(head: nn.Module, untrained: bool) -> Iterator[None]:
    """Let a head's parameters need no gradient inside, if `untrained`."""
    held = trained(head) if untrained else []
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)
