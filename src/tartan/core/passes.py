"""Passes batches through the body; of a step's gradients, all are computed here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tartan.core.alignment import example_alignments
from tartan.core.body import SharedBody
from tartan.core.body_gradient import BodyGradient, HeadInputs
from tartan.core.gradients import take_gradient
from tartan.core.mixed_precision import present_autocast
from tartan.core.processes import Processes, Summed
from tartan.core.running_statistics import frozen_running_statistics, running_statistics
from tartan.core.task import Batch, MicroBatch, Task


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


class Passes:
    """Passes batches through the body, micro-batch by micro-batch.

    A task's loss is the mean over the whole batch's units: each micro-batch counts by its units, so
    that the result does not depend on how the batch is split, and adds up over processes. Forward
    passes run in the autocast in which this object is made.

    Args:
        body: the shared body.
        processes: the processes that have the rest of each batch; None if there are no others.
        seed: called before each micro-batch with a purpose and the micro-batch's number, to seed
            its random draws.
        during: returns a context manager to enter around everything that is computed for a purpose,
            to measure its cost.

    Attributes:
        parameters: the body's trained parameters.
    """

    def __init__(
        self,
        body: SharedBody,
        processes: Processes | None = None,
        seed: Callable[[Purpose, int], None] = lambda purpose, part: None,
        during: Callable[[Purpose], AbstractContextManager[object]] = lambda purpose: nullcontext(),
    ) -> None:
        self.body, self.parameters = body, body.parameters
        self.processes = processes or Processes()
        self._seed, self._during = seed, during
        self._autocast = present_autocast(self.device)
        self._statistics = running_statistics(body.module)

    @property
    def device(self) -> torch.device:
        """The body's device."""
        return next(self.body.module.parameters()).device

    def gradient(
        self,
        purpose: Purpose,
        task: Task,
        batch: Batch,
        *,
        keep: bool = False,
        example_weights: Tensor | None = None,
    ) -> BodyGradient:
        """Return the gradient of a task's mean loss, whose sum over processes has begun.

        It has an entry for each of the body's parameters and, if the purpose is the task itself,
        one for each of its head's in `of_head`. `.grad` is empty afterwards. A batch without any
        unit has the loss 0 and reaches no parameter.

        Args:
            purpose: what the pass is for.
            task: the task.
            batch: its batch, or this process's share of it.
            keep: whether to keep what the head reads, in `read`.
            example_weights: weights of the whole batch's examples, `(examples,)`. The body's
                gradient is then that of the weighted loss; the head's gradient and the returned
                loss are unweighted.

        Raises:
            ValueError: the objective's losses are not one for each unit.
        """
        parameters = [*self.parameters, *self._trained_head(purpose, task)]
        if not batch.units:  # on no process: there is nothing to sum
            nothing = Summed([None] * len(parameters), self.no_loss())
            return BodyGradient(self.body, task, lambda: nothing, len(self.parameters))
        loss, read = self.backward(purpose, task, batch, keep, example_weights)
        arrive = self.processes.begin_sum(purpose, parameters, take_gradient(parameters), loss)
        return BodyGradient(self.body, task, arrive, len(self.parameters), read)

    def backward(
        self,
        purpose: Purpose,
        task: Task,
        batch: Batch,
        keep: bool = False,
        example_weights: Tensor | None = None,
    ) -> tuple[Tensor, HeadInputs | None]:
        """Add the gradient on this process's share to `.grad` (for arguments see `gradient`).

        Returns:
            This process's share of the task's mean loss, a detached scalar, and what the head reads
            of the whole batch, if it is kept.
        """
        head = self._trained_head(purpose, task)
        losses, reads = [], []
        with self._doing(purpose), _untrained(task.head, purpose.kind != "task"):
            for number, part in batch.numbered:
                self._seed(purpose, number)
                read, unit_losses = self._forward(task, part)
                loss = unit_losses.sum() / batch.units
                if example_weights is not None:
                    weights = torch.split(example_weights, list(batch.examples_of_all))[number]
                    weighted = unit_losses * weights[task.objective.owners(part.inputs)]
                    self.body.backward(
                        weighted.sum() / batch.units, self.parameters, retain_graph=True
                    )
                    if head:
                        self.body.backward(loss, head)
                elif self.parameters or head:  # not all is frozen
                    self.body.backward(loss, [*self.parameters, *head])
                losses.append(loss.detach())
                if keep:
                    reads.append(HeadInputs(read.features.detach(), read.targets))
            self.body.fill_up(batch, lambda part: self._forward(task, part)[1].sum())
        total = torch.stack(losses).sum() if losses else self.no_loss()
        return total, self._gathered(purpose, reads, batch) if keep else None

    @torch.no_grad()
    def features(self, purpose: Purpose, task: Task, batch: Batch) -> HeadInputs:
        """Return what the task's head reads of a batch, without computing a gradient."""
        objective, body, reads = task.objective, self.body.module, []
        with self._doing(purpose), self._autocast():
            for number, part in batch.numbered:
                self._seed(purpose, number)
                features = objective.features(body, part.inputs)
                reads.append(HeadInputs(features, objective.targets(part.inputs)))
            self.body.fill_up(batch, lambda part: objective.features(body, part.inputs).sum())
        # casts of parameters that were made without gradients must not serve a later pass
        torch.clear_autocast_cache()
        return self._gathered(purpose, reads, batch)

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
                lambda number: self._seed(own, number),
            )  # fmt: skip
        gather, sizes = self.processes.gather, batch.examples_of_all
        return (
            gather((purpose, "alignments"), alignments, batch, sizes),
            gather((purpose, "units"), units, batch, sizes),
        )

    def losses(self, task: Task, part: MicroBatch) -> Tensor:
        """Return the loss of each unit in a micro-batch, shape `(n,)`."""
        return self._forward(task, part)[1]

    @contextmanager
    def drawing(self, purpose: Purpose) -> Iterator[None]:
        """Seed and measure what is drawn and computed without a pass, the same on every process."""
        with self._during(purpose):
            self._seed(purpose, 0)
            yield

    def no_loss(self) -> Tensor:
        """Return zero, the loss of a process that has none of a batch's examples."""
        parameter = next(self.body.module.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        return torch.zeros((), dtype=dtype, device=parameter.device)

    def _trained_head(self, purpose: Purpose, task: Task) -> list[nn.Parameter]:
        """Return the parameters of the head that a pass trains: only a task's own trains it."""
        return trained(task.head) if purpose.kind == "task" else []

    def _forward(self, task: Task, part: MicroBatch) -> tuple[HeadInputs, Tensor]:
        """Return what the head reads, and the loss of each unit, after checking their number."""
        objective, body, inputs = task.objective, self.body.module, part.inputs
        with self._autocast():
            read = HeadInputs(objective.features(body, inputs), objective.targets(inputs))
            losses = objective.losses(body, task.head, read.features, read.targets)
        if losses.shape != (part.units,):
            raise ValueError(
                f"the losses of task {task.name} have shape {tuple(losses.shape)}, but its "
                f"micro-batch has {part.units} units: a loss for each is needed"
            )
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
        with self._during(purpose), statistics:
            yield

    def _gathered(self, purpose: Purpose, reads: Sequence[HeadInputs], batch: Batch) -> HeadInputs:
        """Return what a head reads of the whole batch, from this process's micro-batches."""
        gather, sizes = self.processes.gather, batch.units_of_all
        return HeadInputs(
            gather((purpose, "features"), [read.features for read in reads], batch, sizes),
            gather((purpose, "targets"), [read.targets for read in reads], batch, sizes),
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
