"""Takes every pass through the body that training needs; only here are gradients computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from src.core.alignment import example_alignments
from src.core.body import WholeBody
from src.core.body_gradient import BodyGradient
from src.core.gradients import take_gradient
from src.core.mixed_precision import present_autocast
from src.core.processes import Processes, Summed
from src.core.running_statistics import frozen_running_statistics, running_statistics
from src.core.task import Batch, Inputs, Task


@dataclass(frozen=True)
class Purpose:
    """What a computation in a step is for, which decides its random seed and cost account.

    Computations for the meta-gradient have kinds of their own, so that no task's name, whatever it
    is, can coincide with them.

    Attributes:
        kind: kind of computation.
        task: name of the task; empty where there is none.
    """

    kind: Literal[
        "task", "alignments", "second_batch", "meta_gradient", "meta_features", "meta_head", "draws"
    ]
    task: str = ""

    def __str__(self) -> str:
        return self.task if self.kind == "task" else f"{self.kind} {self.task}".strip()


@dataclass(frozen=True)
class PassContext:
    """The processes, seeds and clocks with which a step's passes run.

    Attributes:
        processes: the processes that have the rest of each batch.
        seed: called before each micro-batch with a purpose and the micro-batch's number, to seed
            its random draws.
        during: returns a context manager to enter around everything that is computed for a purpose,
            to measure its cost.
    """

    processes: Processes = field(default_factory=Processes)
    seed: Callable[[Purpose, int], None] = lambda purpose, part: None
    during: Callable[[Purpose], AbstractContextManager[object]] = lambda purpose: nullcontext()


@dataclass(frozen=True)
class HeadInputs:
    """What a head reads of a whole batch.

    Attributes:
        features: `(n, hidden)`.
        targets: `(n,)`.
    """

    features: Tensor
    targets: Tensor


@dataclass(frozen=True)
class PassResult:
    """The results of a batch's passes, besides the gradient.

    Attributes:
        loss: this process's share of the task's mean loss, a detached scalar.
        read: what the task's head reads of the whole batch; None unless asked for.
    """

    loss: Tensor
    read: HeadInputs | None = None


class Passes:
    """Passes batches through the body, micro-batch by micro-batch.

    A task's loss is the mean over the whole batch's units: each micro-batch counts by its units, so
    that the result does not depend on how the batch is split, and adds up over processes. Forward
    passes run in the autocast in which this object is made.

    Attributes:
        body: the shared body.
        parameters: the body's trained parameters.
    """

    def __init__(self, body: WholeBody, context: PassContext | None = None) -> None:
        self.body = body
        self._context = context or PassContext()
        self.parameters = body.parameters
        self._autocast = present_autocast(self.device)
        self._statistics = running_statistics(body.module)

    @property
    def processes(self) -> Processes:
        """The processes that have the rest of each batch."""
        return self._context.processes

    @property
    def device(self) -> torch.device:
        """The body's device."""
        return next(self.body.module.parameters()).device

    def backward(
        self,
        purpose: Purpose,
        task: Task,
        batch: Batch,
        *,
        keep: bool = False,
        example_weights: Tensor | None = None,
    ) -> PassResult:
        """Add the gradient of a task's mean loss to `.grad` of the body's parameters.

        If the purpose is the task itself, its head's gradient is computed too.

        Args:
            purpose: what the pass is for.
            task: the task.
            batch: its batch, or this process's share of it.
            keep: whether to return what the head reads.
            example_weights: weights of the whole batch's examples, `(examples,)`. The body's
                gradient is then that of the weighted loss; the head's gradient and the returned
                loss are unweighted.

        Raises:
            ValueError: the objective's losses are not one for each unit.
        """
        trains_head = purpose.kind == "task"
        head = trained(task.head) if trains_head else []
        by_part = None
        if example_weights is not None:
            by_part = torch.split(example_weights, list(batch.examples_of_all))
        losses, features, targets = [], [], []
        with self._doing(purpose), _untrained(task.head, not trains_head):
            for number, part in batch.numbered:
                self._context.seed(purpose, number)
                read, unit_losses = self._forward(task, part.inputs)
                if unit_losses.shape != (part.units,):
                    raise ValueError(
                        f"the losses of task {task.name} have shape {tuple(unit_losses.shape)}, "
                        f"but its micro-batch has {part.units} units: a loss for each is needed"
                    )
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
        return PassResult(
            total, self._gathered(purpose, features, targets, batch) if keep else None
        )

    def begin(self, purpose: Purpose, task: Task, passed: PassResult) -> Callable[[], Summed]:
        """Begin to sum over processes what `backward` has left in `.grad`, which is emptied.

        The sum has an entry for each of the body's parameters and, if the purpose is the task
        itself, for each of its head's.
        """
        head = trained(task.head) if purpose.kind == "task" else []
        parameters = [*self.parameters, *head]
        return self.processes.begin_sum(purpose, parameters, take_gradient(parameters), passed.loss)

    @torch.no_grad()
    def features(self, purpose: Purpose, task: Task, batch: Batch) -> HeadInputs:
        """Return what the task's head reads of a batch, without computing a gradient."""
        features, targets = [], []
        with self._doing(purpose), self._autocast():
            for number, part in batch.numbered:
                self._context.seed(purpose, number)
                features.append(task.objective.features(self.body.module, part.inputs))
                targets.append(task.objective.targets(part.inputs))
            self.body.fill_up(
                batch, lambda part: task.objective.features(self.body.module, part.inputs).sum()
            )
        # casts of parameters that were made without gradients must not serve a later pass
        torch.clear_autocast_cache()
        return self._gathered(purpose, features, targets, batch)

    def alignments(
        self, task: Task, batch: Batch, direction: BodyGradient
    ) -> tuple[Tensor, Tensor]:
        """Return each example's `<direction, grad l_j>` and number of units, `(examples,)`.

        Dropout has the seed of the task's own pass (see `example_alignments`).
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
        """Return the loss of each unit in a micro-batch, shape `(n,)`."""
        return self._forward(task, inputs)[1]

    @contextmanager
    def drawing(self, purpose: Purpose) -> Iterator[None]:
        """Seed and measure what is drawn and computed without a pass, the same on every process."""
        with self._context.during(purpose):
            self._context.seed(purpose, 0)
            yield

    def no_loss(self) -> Tensor:
        """Return zero, the loss of a process that has none of a batch's examples."""
        parameter = next(self.body.module.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        return torch.zeros((), dtype=dtype, device=parameter.device)

    def _forward(self, task: Task, inputs: Inputs) -> tuple[HeadInputs, Tensor]:
        """Return what the head reads, and the loss of each unit."""
        objective, body = task.objective, self.body.module
        with self._autocast():
            read = HeadInputs(objective.features(body, inputs), objective.targets(inputs))
            losses = objective.losses(body, task.head, read.features, read.targets)
        return read, losses

    @contextmanager
    def _doing(self, purpose: Purpose) -> Iterator[None]:
        """Enter the purpose's context; only a task's own pass updates running statistics.

        Processes' changes of running statistics are added up. That is a single process's update
        where a batch is one micro-batch.
        """
        if purpose.kind == "task":
            statistics = self.processes.adding_changes(self._statistics)
        else:
            statistics = frozen_running_statistics(self.body.module)
        with self._context.during(purpose), statistics:
            yield

    def _gathered(
        self, purpose: Purpose, features: Sequence[Tensor], targets: Sequence[Tensor], batch: Batch
    ) -> HeadInputs:
        gather, sizes = self.processes.gather, batch.units_of_all
        return HeadInputs(
            gather((purpose, "features"), features, batch, sizes),
            gather((purpose, "targets"), targets, batch, sizes),
        )


def trained(head: nn.Module) -> list[nn.Parameter]:
    """Return a head's trained parameters."""
    return [p for p in head.parameters() if p.requires_grad]


@contextmanager
def _untrained(head: nn.Module, untrained: bool) -> Iterator[None]:
    """If `untrained`, let a head's parameters require no gradient inside the `with` block."""
    held = trained(head) if untrained else []
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)
