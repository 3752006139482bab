"""One training step: the gradients that a weighting asks for, and the step's record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tartan.core.body_gradient import BodyGradient, HeadInputs
from tartan.core.gradients import Gradient, dot, mean_of, put_gradient
from tartan.core.meta_head import MetaHead
from tartan.core.mixed_precision import without_autocast
from tartan.core.mixture import Mixed
from tartan.core.passes import Passes, Purpose, trained
from tartan.core.task import StepBatch, Task

WeighExamples = Callable[[Tensor, Tensor], Tensor]
"""A function from alignments and numbers of units, both `(examples,)`, to weights `(examples,)`."""


@dataclass(frozen=True)
class StepRecord:
    """The record of one step; tensors are detached, on the device, of shape `(tasks,)` or `()`.

    `tasks` are the names of the step's tasks. `squared_norm` is that of the combined gradient.
    `cosines`, `meta_loss` and `meta_head_loss` are None without a meta-gradient;
    `effective_examples` is None where examples are not weighted, and otherwise Kish's effective
    sample size of each task over its number of examples, `(sum w)^2 / (n sum w^2)`: 1 for equal
    weights.
    """

    tasks: tuple[str, ...]
    losses: Tensor
    weights: Tensor
    gradient_norms: Tensor
    squared_norm: Tensor
    cosines: Tensor | None = None
    meta_loss: Tensor | None = None
    meta_head_loss: Tensor | None = None
    effective_examples: Tensor | None = None


class Step:
    """The gradients of one step, computed when a weighting asks for them.

    A weighting's `mix` first asks for `meta_gradient()`, if it needs it, then once for
    `gradients()`. Nothing is computed that is not asked for.

    Each of several processes passes its share of every batch. A task's gradient is summed over them
    while the next task's pass runs, and always before it enters a product: the cosine of sums is
    not the mean of cosines. So all processes apply the same weights.

    Args:
        passes: computes the passes.
        tasks: the tasks of this step; for a meta-gradient the end task comes first.
        batch: a batch for each of them, by name, and the further batches that the weighting needs.
        meta_head: the meta head, fitted for the meta-gradient; None where the weighting needs none.
    """

    def __init__(
        self,
        passes: Passes,
        tasks: Sequence[Task],
        batch: StepBatch,
        meta_head: MetaHead | None = None,
    ) -> None:
        self._passes, self._tasks, self._batch = passes, tasks, batch
        self._meta_head = meta_head
        self._weigh_examples: WeighExamples | None = None
        self._of_end_task: BodyGradient | None = None
        self._meta: BodyGradient | None = None
        self._meta_head_loss: Tensor | None = None
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._effective: list[Tensor] = []
        self._of_heads: dict[nn.Module, list[Gradient]] = {}

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks of this step, in the order of their gradients."""
        return self._tasks

    def examples(self, task: Task) -> int:
        """Return the number of examples in the task's batch, over all processes."""
        return self._batch.tasks[task.name].examples

    # What a weighting can ask for

    def meta_gradient(self) -> BodyGradient:
        """Return the gradient of the end task's validation loss, through the meta head.

        The end task's own pass comes first, because the meta head is fitted on its features, unless
        the step brings other examples for that. Its gradient is kept for `gradients`.

        Raises:
            ValueError: there is no meta head or no validation batch, or `gradients` was called
                before.
        """
        if self._meta_head is None or self._batch.meta_batch is None:
            raise ValueError(
                "no meta-gradient without a meta head and a validation batch; a weighting asks for "
                "them by its attribute needs = Needs(meta_gradient=True)"
            )
        if self._meta is not None or self._losses:
            raise ValueError("a weighting asks for the meta-gradient once, before all gradients")
        end_task, meta_head, b_val = self._tasks[0], self._meta_head, self._batch.meta_batch
        separate = meta_head.settings.kind == "separate"
        # the gradient on the end task's own batch, whose features phi* is fitted on
        fits_on_batch = separate and self._batch.meta_head_batch is None
        g_end = self._of_end_task = self._gradient(end_task, keep=fits_on_batch)
        phi_star = self._fitted(meta_head, end_task, g_end.read) if separate else end_task.head
        through_phi_star = replace(end_task, head=phi_star)
        self._meta = self._passes.gradient(Purpose("meta_gradient"), through_phi_star, b_val)
        return self._meta

    def gradients(self) -> Iterator[BodyGradient]:
        """Yield each task's gradient, in order; a head gets its own gradient, unweighted.

        Where a sum over processes takes time, the next task's pass has run by then.
        """
        pending: deque[BodyGradient] = deque()
        for task in self._tasks:
            found, self._of_end_task = self._of_end_task, None  # of `meta_gradient`
            pending.append(self._gradient(task) if found is None else found)
            while len(pending) > int(self._passes.processes.overlaps):
                yield self._noted(pending.popleft())
        while pending:
            yield self._noted(pending.popleft())

    def weighing_examples(self, weigh: WeighExamples) -> Step:
        """Make `gradients` weight the examples of auxiliary batches; return the step.

        It comes before `meta_gradient`. Heads get the gradient of the unweighted batch.

        Args:
            weigh: returns weights, with mean 1 over units, from each example's alignment `<g_meta,
                g_j>` and number of units.

        Raises:
            ValueError: `meta_gradient` or `gradients` was called before.
        """
        if self._meta is not None or self._losses:
            raise ValueError("a weighting calls weighing_examples before it asks for gradients")
        self._weigh_examples = weigh
        return self

    def second_gradients(self) -> Iterator[BodyGradient]:
        """Yield each task's gradient on a second, independently drawn batch; heads get none.

        Raises:
            ValueError: the step has no such batches.
        """
        if self._batch.second is None:
            raise ValueError("this weighting needs a second batch of each task")
        for task in self._tasks:
            purpose = Purpose("second_batch", task.name)
            yield self._passes.gradient(purpose, task, self._batch.second[task.name])

    def seed_draws(self) -> None:
        """Seed the weighting's own draws, as a function of the step, the same on all processes."""
        with self._passes.drawing(Purpose("draws")):
            pass

    def normal(self, count: int) -> Tensor:
        """Return standard normal numbers, `(count,)`, drawn from the step's seed.

        Every call in a step starts the same sequence anew, so draw all numbers at once.
        """
        self.seed_draws()
        loss = self._passes.no_loss()
        return torch.randn(count, device=loss.device, dtype=loss.dtype)

    # What a step leaves behind

    def run(self, mix: Callable[[Step], Mixed]) -> StepRecord:
        """Fill `.grad` of the body with the gradient of `mix`, and of each head with its own.

        A head that several tasks share gets the mean of their gradients. In a Trainer's mixed
        precision, passes run in it, and `mix` computes in the types of its operands.

        Raises:
            ValueError: `mix` did not ask for every task's gradient, or what it returned is no
                mixture of them.
        """
        heads = [p for task in self._tasks for p in task.head.parameters()]
        for parameter in [*self._passes.parameters, *heads]:
            parameter.grad = None  # what is left in there would count as the first task's
        with without_autocast(self._passes.device):
            return self._filled(mix(self))

    def _filled(self, mixed: Mixed) -> StepRecord:
        """Put the gradients of body and heads into `.grad`, and return the step's record."""
        body = self._passes.body
        if len(self._losses) != len(self._tasks):
            raise ValueError(
                f"the weighting mixed {len(self._losses)} of {len(self._tasks)} tasks' gradients"
            )
        weights = self._weights_of(mixed)
        squared_norm = mixed.squared_norm
        if squared_norm is None:
            local = dot(mixed.gradient, mixed.gradient, body.product_dtype, self._losses[0].device)
            squared_norm = body.total(local)
        body.put(mixed.gradient)
        for head, gradients in self._of_heads.items():
            put_gradient(trained(head), mean_of(gradients))
        return StepRecord(
            tasks=tuple(task.name for task in self._tasks),
            losses=torch.stack(self._losses),
            weights=weights,
            gradient_norms=torch.stack(self._norms),
            squared_norm=squared_norm,
            cosines=mixed.cosines,
            meta_loss=None if self._meta is None else self._meta.loss,
            meta_head_loss=self._meta_head_loss,
            effective_examples=torch.stack(self._effective) if self._effective else None,
        )

    def _weights_of(self, mixed: Mixed) -> Tensor:
        """Return the weights in the order of the tasks, `(tasks,)`, after checking the mixture."""
        if not isinstance(mixed, Mixed):
            raise ValueError(f"the weighting's mix returned {type(mixed).__name__}, not a Mixed")
        names = [task.name for task in self._tasks]
        order = list(mixed.tasks or names)
        if mixed.weights.shape != (len(names),) or sorted(order) != sorted(names):
            raise ValueError(
                f"the weighting gave weights of shape {tuple(mixed.weights.shape)} to the tasks "
                f"{', '.join(order)}; give each of {', '.join(names)} one (0 to omit it)"
            )
        if len(mixed.gradient) != len(self._passes.parameters):
            raise ValueError(
                f"the weighting's gradient has {len(mixed.gradient)} entries, but the body "
                f"{len(self._passes.parameters)} parameters"
            )
        weights = mixed.weights.detach()
        return weights.clone() if order == names else weights[[order.index(n) for n in names]]

    def _gradient(self, task: Task, keep: bool = False) -> BodyGradient:
        """Return a task's gradient, whose sum over processes has begun."""
        batch, weights = self._batch.tasks[task.name], None
        if self._weigh_examples is not None:
            share = torch.ones_like(self._passes.no_loss())
            if self._meta is not None and batch.units:
                weights = self._weigh_examples(*self._passes.alignments(task, batch, self._meta))
                # Kish's effective sample size, as a share of the examples
                share = weights.sum().square() / (len(weights) * weights.square().sum())
            self._effective.append(share)
        purpose = Purpose("task", task.name)
        return self._passes.gradient(purpose, task, batch, keep=keep, example_weights=weights)

    def _fitted(self, meta_head: MetaHead, end_task: Task, read: HeadInputs | None) -> nn.Module:
        """Return the meta head, fitted on what the end task's head reads of training examples.

        That is `read`, of its own batch, unless the step brings other examples.
        """
        if self._batch.meta_head_batch is not None:
            others = self._batch.meta_head_batch
            read = self._passes.features(Purpose("meta_features"), end_task, others)
        assert read is not None, "the end task's pass has kept what its head reads"
        with self._passes.drawing(Purpose("meta_head")):
            self._meta_head_loss = meta_head.fit(
                self._passes.body.module, end_task.objective, read.features, read.targets
            )
        return meta_head.head

    def _noted(self, gradient: BodyGradient) -> BodyGradient:
        """Note what the step's record has of a gradient, after waiting for it, and return it."""
        self._of_heads.setdefault(gradient.task.head, []).append(gradient.of_head)
        self._losses.append(gradient.loss)
        self._norms.append(gradient.squared_norm.sqrt())
        return gradient
