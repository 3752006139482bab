"""Passes of batches through the body, in which all gradients of a step are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from tartan.core.alignment import example_alignments
from tartan.core.body import (
    BodyGradient,
    SharedBody,
    Summed,
    frozen_running_statistics,
    running_statistics,
)
from tartan.core.device import present_autocast
from tartan.core.gradients import take_gradient
from tartan.core.meta_head import MetaHead
from tartan.core.task import Batch, HeadInputs, MicroBatch, Task


class Purpose(NamedTuple):
    """What is computed in a step, which decides its random seed and whose cost it is.

    What is computed for the meta-gradient has kinds of its own, with which no task's name can
    coincide. `task` is empty where there is none.
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
        seed: called before each micro-batch with a purpose and the micro-batch's number, to seed
            its random draws.

    Attributes:
        parameters: the body's trained parameters.
    """

    def __init__(
        self,
        body: SharedBody,
        seed: Callable[[Purpose, int], None] = lambda purpose, number: None,
    ) -> None:
        self.body, self.parameters = body, body.parameters
        self._seed = seed
        self._autocast = present_autocast(body.device)
        self._statistics = running_statistics(body.module)

    def gradient(
        self,
        purpose: Purpose,
        task: Task,
        batch: Batch,
        *,
        example_weights: Tensor | None = None,
        keep: bool = False,
    ) -> BodyGradient:
        """Return the gradient of a task's mean loss, whose sum over processes has begun.

        It has an entry for each of the body's parameters and, if the purpose is the task itself,
        one for each of its head's in `of_head`. `.grad` is empty afterwards. A batch without any
        unit has the loss 0 and reaches no parameter.

        Args:
            purpose: what the pass is for.
            task: the task.
            batch: its batch, or this process's share of it.
            example_weights: weights of the whole batch's examples, `(examples,)`. The body's
                gradient is then that of the weighted loss; the head's gradient and the returned
                loss are unweighted.
            keep: whether to keep what the head reads, in `read`.
        """
        head = trained(task.head) if purpose.kind == "task" else []
        inputs = [*self.parameters, *head]
        if not batch.units:  # on no process: there is nothing to sum
            nothing = Summed([None] * len(inputs), self.no_loss())
            return BodyGradient(self.body, task, lambda: nothing, len(self.parameters))
        take_gradient(inputs)  # what is left in `.grad` would be added to
        losses, reads = [], []
        with self.computing(purpose):
            for number, part in batch.numbered:
                self._seed(purpose, number)
                read, unit_losses = self._forward(task, part)
                loss = unit_losses.sum() / batch.units
                if example_weights is not None:
                    weights = torch.split(example_weights, list(batch.examples_of_all))[number]
                    weighted = unit_losses * weights[task.objective.owners(part.inputs)]
                    self.body.backward(weighted.sum() / batch.units, self.parameters, True)
                    if head:
                        self.body.backward(loss, head)
                elif inputs:  # not all is frozen
                    self.body.backward(loss, inputs)
                losses.append(loss.detach())
                if keep:
                    reads.append(HeadInputs(read.features.detach(), read.targets))
            self.body.fill_up(batch, lambda part: self._forward(task, part)[1].sum())
        share = torch.stack(losses).sum() if losses else self.no_loss()
        read_by_all = self._gathered(purpose, reads, batch) if keep else None
        arrive = self.body.begin_sum(purpose, inputs, take_gradient(inputs), share)
        return BodyGradient(self.body, task, arrive, len(self.parameters), read_by_all)

    @torch.no_grad()
    def features(self, purpose: Purpose, task: Task, batch: Batch) -> HeadInputs:
        """Return what the task's head reads of a batch, without computing a gradient."""
        objective, body, reads = task.objective, self.body.module, []
        with self.computing(purpose), self._autocast():
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
        purpose, of_task = Purpose("alignments", task.name), Purpose("task", task.name)
        with self.computing(purpose):
            alignments, units = example_alignments(
                self.body.module, task, batch, direction.values,
                lambda number: self._seed(of_task, number),
            )  # fmt: skip
        gather, sizes = self.body.gather, batch.examples_of_all
        both = (("alignments", alignments), ("units", units))
        first, second = (gather((purpose, name), parts, batch, sizes) for name, parts in both)
        return first, second

    def fit(self, meta_head: MetaHead, task: Task, read: HeadInputs) -> Tensor:
        """Fit the meta head to what the task's head reads; return its loss, a scalar."""
        with self.computing(Purpose("meta_head")):
            self._seed(Purpose("meta_head"), 0)
            return meta_head.fit(self.body.module, task.objective, read.features, read.targets)

    def seed_draws(self) -> None:
        """Seed draws that belong to no pass, the same on all processes."""
        self._seed(Purpose("draws"), 0)

    def no_loss(self) -> Tensor:
        """Return zero, the loss of a process that has none of a batch's examples."""
        parameter = next(self.body.module.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        return torch.zeros((), dtype=dtype, device=parameter.device)

    @contextmanager
    def computing(self, purpose: Purpose) -> Iterator[None]:
        """Enclose what is computed for a purpose; subclasses may measure it.

        Only a task's own pass updates running statistics. Processes' changes of them are added up:
        that is a single process's update where a batch is one micro-batch.
        """
        if purpose.kind == "task":
            statistics = self.body.adding_changes(self._statistics)
        else:
            statistics = frozen_running_statistics(self.body.module)
        with statistics:
            yield

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

    def _gathered(self, purpose: Purpose, reads: Sequence[HeadInputs], batch: Batch) -> HeadInputs:
        """Return what a head reads of the whole batch, from this process's micro-batches."""
        gather, sizes = self.body.gather, batch.units_of_all
        return HeadInputs(
            gather((purpose, "features"), [read.features for read in reads], batch, sizes),
            gather((purpose, "targets"), [read.targets for read in reads], batch, sizes),
        )


def trained(head: nn.Module) -> list[nn.Parameter]:
    """Return a head's trained parameters."""
    return [p for p in head.parameters() if p.requires_grad]
