"""Passes of batches through the body, in which all gradients of a step are computed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from tartan.core.body import (
    BodyGradient,
    SharedBody,
    Summed,
    frozen_running_statistics,
    running_statistics,
)
from tartan.core.device import present_autocast
from tartan.core.gradients import take_gradient
from tartan.core.task import Batch, HeadInputs, MicroBatch, Task


class Purpose(NamedTuple):
    """What is computed in a step, and for which task: its random seed, and whose cost it is."""

    kind: Literal["task", "second_batch", "meta_gradient", "meta_features", "meta_head", "draws"]
    task: str = ""

    def __str__(self) -> str:
        return self.task if self.kind == "task" else f"{self.kind} {self.task}".strip()


class Passes:
    """Passes batches through the body, micro-batch by micro-batch.

    Each micro-batch counts by its units, so that a task's loss does not depend on how its batch is
    split. Forward passes run in the autocast in which this object is made. `seed` is called with a
    purpose and a micro-batch's number before its pass, to seed its random draws.
    """

    def __init__(
        self, body: SharedBody, seed: Callable[[Purpose, int], None] = lambda purpose, number: None
    ) -> None:
        self.body, self.parameters, self.seed = body, body.parameters, seed
        self.purpose: Purpose | None = None  # of what is computed now
        self._autocast = present_autocast(body.device)
        self._statistics = running_statistics(body.module)

    def gradient(
        self, purpose: Purpose, task: Task, batch: Batch, keep: bool = False
    ) -> BodyGradient:
        """Return the gradient of a task's mean loss, whose sum over processes has begun.

        The head's gradient is computed only if the purpose is the task itself. `.grad` is empty
        afterwards. A batch without any unit has the loss 0 and reaches no parameter. `keep` keeps
        what the head reads, in `read`.
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
                self.seed(purpose, number)
                read, unit_losses = self._forward(task, part)
                loss = unit_losses.sum() / batch.units
                if inputs:  # not all is frozen
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
                self.seed(purpose, number)
                features = objective.features(body, part.inputs)
                reads.append(HeadInputs(features, objective.targets(part.inputs)))
            self.body.fill_up(batch, lambda part: objective.features(body, part.inputs).sum())
        # casts of parameters that were made without gradients must not serve a later pass
        torch.clear_autocast_cache()
        return self._gathered(purpose, reads, batch)

    def no_loss(self) -> Tensor:
        """Return zero, the loss of a process that has none of a batch's examples."""
        parameter = next(self.body.module.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        return torch.zeros((), dtype=dtype, device=parameter.device)

    @contextmanager
    def computing(self, purpose: Purpose) -> Iterator[None]:
        """Enclose what is computed; only a task's own pass updates running statistics."""
        if purpose.kind == "task":
            statistics = self.body.adding_changes(self._statistics)
        else:
            statistics = frozen_running_statistics(self.body.module)
        self.purpose = purpose
        try:
            with statistics:
                yield
        finally:
            self.purpose = None

    def _forward(self, task: Task, part: MicroBatch) -> tuple[HeadInputs, Tensor]:
        """Return what the head reads, and the loss of each unit, after checking their number."""
        objective, body, inputs = task.objective, self.body.module, part.inputs
        with self._autocast():
            read = HeadInputs(objective.features(body, inputs), objective.targets(inputs))
            losses = objective.losses(body, task.head, read.features, read.targets)
        if losses.shape != (part.units,):
            raise ValueError(
                f"the losses of task {task.name} have shape {tuple(losses.shape)}, but its "
                f"micro-batch has {part.units} units"
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
