"""One training step: the gradients that a weighting asks for, and the step's record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tartan.core.body import BodyGradient, SharedBody
from tartan.core.device import without_autocast
from tartan.core.gradients import Gradient, dot, mean_of, put_gradient
from tartan.core.meta_head import MetaHead
from tartan.core.mixture import Mixed
from tartan.core.passes import Passes, Purpose, trained
from tartan.core.task import HeadInputs, StepBatch, Task


@dataclass(frozen=True)
class StepRecord:
    """The record of one step; tensors are detached, on the device, of shape `(tasks,)` or `()`."""

    tasks: tuple[str, ...]  # their names
    losses: Tensor  # each task's mean loss
    weights: Tensor  # each task's applied weight
    gradient_norms: Tensor  # of each task's gradient
    squared_norm: Tensor  # of the combined gradient
    cosines: Tensor | None = None  # of each task's gradient with the meta-gradient
    meta_loss: Tensor | None = None  # on the validation batch
    meta_head_loss: Tensor | None = None  # on the examples that the meta head was fitted on


@dataclass(frozen=True)
class StepGradients:
    """The gradients that one step's update needs, of the body and of each head."""

    body: SharedBody
    of_body: Gradient
    of_heads: dict[nn.Module, Gradient]

    def put(self) -> None:
        """Set `.grad` for the optimiser; nothing else in the core leaves anything in there."""
        self.body.put(self.of_body)
        for head, gradient in self.of_heads.items():
            put_gradient(trained(head), gradient)


@dataclass(eq=False)
class Step:
    """The gradients of one step, computed when a weighting asks for them.

    A weighting's `mix` first asks for `meta_gradient()`, if it needs it, then once for
    `gradients()`. For a meta-gradient, the end task comes first in `tasks`. A gradient is summed
    over processes before it enters a product: the cosine of sums is not the mean of cosines.

    Before it asks, `mix` may leave out some `tasks`.
    """

    passes: Passes
    tasks: Sequence[Task]
    batch: StepBatch
    meta_head: MetaHead | None = None

    def __post_init__(self) -> None:
        self._of_end_task: BodyGradient | None = None
        self._meta: BodyGradient | None = None
        self._meta_head_loss: Tensor | None = None
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._of_heads: dict[nn.Module, list[Gradient]] = {}

    def meta_gradient(self) -> BodyGradient:
        """Return the gradient of the end task's validation loss, through the meta head.

        The end task's own pass comes first, because the meta head is fitted on its features, unless
        the step brings other examples for that. Its gradient is kept for `gradients`.
        """
        end_task, meta_head, b_val = self.tasks[0], self.meta_head, self.batch.meta_batch
        if meta_head is None or b_val is None:
            raise ValueError("a meta-gradient needs a meta head and a validation batch")
        fits_on_batch = self.batch.meta_head_batch is None
        if fits_on_batch and meta_head.settings.extra_examples:
            raise ValueError("a meta head with examples_from='rest' needs a meta_head_batch")
        separate = meta_head.settings.kind == "separate"
        g_end = self._of_end_task = self._gradient(end_task, keep=separate and fits_on_batch)
        phi_star = self._fitted(meta_head, g_end.read) if separate else end_task.head
        through_phi_star = replace(end_task, head=phi_star)
        self._meta = self.passes.gradient(Purpose("meta_gradient"), through_phi_star, b_val)
        return self._meta

    def gradients(self) -> Iterator[BodyGradient]:
        """Yield each task's gradient, in order; a head gets its own gradient, unweighted."""
        pending: deque[BodyGradient] = deque()
        for task in self.tasks:
            of_end_task, self._of_end_task = self._of_end_task, None  # of `meta_gradient`
            pending.append(of_end_task or self._gradient(task))
            while len(pending) > int(self.passes.body.overlaps):
                yield self._recorded(pending.popleft())
        while pending:
            yield self._recorded(pending.popleft())

    def second_gradients(self) -> Iterator[BodyGradient]:
        """Yield each task's gradient on a second, independently drawn batch; heads get none."""
        if self.batch.second is None:
            raise ValueError("second gradients need a weighting with Needs(second_batches=True)")
        for task in self.tasks:
            purpose = Purpose("second_batch", task.name)
            yield self.passes.gradient(purpose, task, self.batch.second[task.name])

    def seed_draws(self) -> None:
        """Seed the weighting's own draws, as a function of the step, the same on all processes."""
        self.passes.seed(Purpose("draws"), 0)

    def normal(self, count: int) -> Tensor:
        """Return standard normal numbers, `(count,)`: the same ones at every call in a step."""
        self.seed_draws()
        loss = self.passes.no_loss()
        return torch.randn(count, device=loss.device, dtype=loss.dtype)

    def run(self, mix: Callable[[Step], Mixed]) -> tuple[StepRecord, StepGradients]:
        """Return the record, and the gradients of the body, by `mix`, and of each head, its own.

        A head that several tasks share gets the mean of their gradients. In mixed precision, passes
        run in it, and `mix` computes in the types of its operands. A `mix` that did not mix each
        task's gradient once is a ValueError.
        """
        body = self.passes.body
        with without_autocast(body.device):
            mixed = mix(self)
            names = [task.name for task in self.tasks]  # `mix` may leave some out
            if mixed.weights.keys() != set(names) or len(self._losses) != len(names):
                raise ValueError(f"the weighting mixed tasks {list(mixed.weights)}, not {names}")
            squared_norm = mixed.squared_norm
            if squared_norm is None:
                local = dot(mixed.gradient, mixed.gradient, body.product_dtype, body.device)
                squared_norm = body.total(local)
            record = StepRecord(
                tasks=tuple(names),
                losses=torch.stack(self._losses),
                weights=torch.stack([mixed.weights[name].detach() for name in names]),
                gradient_norms=torch.stack(self._norms),
                squared_norm=squared_norm,
                cosines=mixed.cosines,
                meta_loss=None if self._meta is None else self._meta.loss,
                meta_head_loss=self._meta_head_loss,
            )
            of_heads = {head: mean_of(gradients) for head, gradients in self._of_heads.items()}
        return record, StepGradients(body, mixed.gradient, of_heads)

    def _gradient(self, task: Task, keep: bool = False) -> BodyGradient:
        """Return a task's gradient, whose sum over processes has begun."""
        batch = self.batch.tasks[task.name]
        return self.passes.gradient(Purpose("task", task.name), task, batch, keep=keep)

    def _fitted(self, meta_head: MetaHead, read: HeadInputs | None) -> nn.Module:
        """Return the meta head, fitted on the step's examples for it, or what was `read` before."""
        end_task, others = self.tasks[0], self.batch.meta_head_batch
        if others is not None:
            read = self.passes.features(Purpose("meta_features"), end_task, others)
        assert read is not None, "the end task's pass has kept what its head reads"
        body = self.passes.body.module
        with self.passes.computing(Purpose("meta_head")):
            self.passes.seed(Purpose("meta_head"), 0)
            self._meta_head_loss = meta_head.fit(body, end_task.objective, *read)
        return meta_head.head

    def _recorded(self, gradient: BodyGradient) -> BodyGradient:
        """Return a gradient after waiting for it and keeping what the step's record has of it."""
        self._of_heads.setdefault(gradient.task.head, []).append(gradient.of_head)
        self._losses.append(gradient.loss)
        self._norms.append(gradient.squared_norm.sqrt())
        return gradient
