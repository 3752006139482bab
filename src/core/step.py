"""One training step of any method: a set of tasks, their batches, and a weighting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from src.core.alignment import example_alignments
from src.core.backward import backward
from src.core.gradients import (
    Gradient,
    add_scaled_,
    cosine,
    dot,
    gramian,
    move_towards_,
    put_gradient,
    take_gradient,
)
from src.core.meta_head import MetaHead
from src.core.processes import Alone, Processes, Summed
from src.core.running_statistics import held_running_statistics
from src.core.task import Batch, Task
from src.core.weighting.base import Observation, Weighting

Reseed = Callable[[str, int], None]


@dataclass(frozen=True)
class StepRecord:
    """What one step did; every field is a detached tensor on the device, shape `(tasks,)` or `()`.

    `squared_norm` is that of the body's mixed gradient.
    `cosines`, `meta_loss` and `meta_head_loss` are None without a meta-gradient;
    `effective_examples` is None where examples are not weighed, and otherwise the share of each
    task's examples that would, equally weighted, vary as much: `(sum w)^2 / (n sum w^2)`.
    """

    losses: Tensor
    weights: Tensor
    gradient_norms: Tensor
    squared_norm: Tensor
    cosines: Tensor | None = None
    meta_loss: Tensor | None = None
    meta_head_loss: Tensor | None = None
    effective_examples: Tensor | None = None


@dataclass(frozen=True)
class _Pass:
    """A task's loss and, where they were asked for, what its head read and should have said.

    The loss is the share of this process, the rest is the whole batch's.
    """

    loss: Tensor
    features: Tensor | None = None
    targets: Tensor | None = None


class _Mixture:
    """`sum_i alpha_i g_i` of gradients that arrive one at a time, in one body-sized buffer.

    Args:
        parameters: entries of a gradient.
        sums_to_one: whether `alpha_i` is the factor's share in the sum of all factors. What is held
            is then the mean so far, so that the sum, known at the end, need not be divided by.
    """

    def __init__(self, parameters: int, sums_to_one: bool) -> None:
        self.gradient: Gradient = [None] * parameters
        self._sums_to_one = sums_to_one
        self._sum: Tensor | None = None

    def add(self, gradient: Gradient, factor: Tensor) -> None:
        """Add `factor * gradient`; the gradient is consumed."""
        if not self._sums_to_one:
            add_scaled_(self.gradient, gradient, factor)
        elif self._sum is None:
            self.gradient, self._sum = gradient, factor
        else:
            self._sum = self._sum + factor
            nothing = self._sum == 0  # as yet: a gradient of weight zero changes nothing
            share = factor / torch.where(nothing, torch.ones_like(factor), self._sum)
            move_towards_(self.gradient, gradient, share)


def mixed_gradients(
    body: nn.Module,
    tasks: Sequence[Task],
    batches: Mapping[str, Batch],
    weighting: Weighting,
    *,
    reseed: Reseed,
    meta_head: MetaHead | None = None,
    meta_batch: Batch | None = None,
    meta_head_batch: Batch | None = None,
    second_batches: Mapping[str, Batch] | None = None,
    dtype: torch.dtype = torch.float32,
    clock: AbstractContextManager[object] | None = None,
    processes: Processes | None = None,
) -> StepRecord:
    """Fill `.grad` of the body with `sum_i alpha_i g_i`, and of each head with its own gradient.

    Paper: Algorithm 1. Head gradients are unweighted. Where the weighting needs the meta-gradient,
    the end task is `tasks[0]`: its pass comes first, its features fit the meta head (unless other
    examples are given for that), and the meta-gradient is then there for every task's cosine.
    Three body-sized buffers are held (the mixed, the meta and the current gradient), whatever the
    number of tasks; a weighting that needs the Gramian holds every task's gradient.

    Several processes each pass their share of every batch. A task's gradient is summed over them
    while the next task's pass runs, which holds one more buffer, and before it enters any product:
    a cosine of sums is no mean of cosines. So all of them apply the same weights.

    Args:
        batches: one batch for each task, by name.
        reseed: called with a name and a micro-batch's index before each pass, to seed dropout.
        meta_batch: the end task's validation batch `B_val`.
        meta_head_batch: training examples of the end task to fit the meta head on; None takes those
            of its batch.
        second_batches: batches drawn independently of `batches`, for weightings that need such.
        dtype: accumulation type of inner products.
        clock: entered for each task's pass and for that of the meta-gradient.
        processes: those that have the rest of the batches; None if there are none.

    Raises:
        ValueError: the weighting needs a meta-gradient, but there is no meta head or batch; or a
            second batch, and there is none.
    """
    clock, processes = clock or nullcontext(), processes or Alone()
    body_parameters = [p for p in body.parameters() if p.requires_grad]
    for parameter in [*body_parameters, *(p for task in tasks for p in task.head.parameters())]:
        parameter.grad = None  # what is left in there would count as the first task's
    step = _Step(body_parameters, weighting, dtype, processes, reseed)
    effective: list[Tensor] = []
    meta_head_loss = None

    for index, task in enumerate(tasks):
        leads = index == 0 and weighting.needs_meta_gradient
        batch = batches[task.name]
        example_weights = None
        if weighting.weighs_examples and not leads:
            example_weights = _weights_of_examples(
                body, task, batch, step.meta().gradient, weighting, reseed, processes
            )
            effective.append(_effective_share(example_weights))
        with clock:
            passed = _backward(
                body, task, task.head, batch, body_parameters, reseed, processes,
                keep=leads and meta_head_batch is None, example_weights=example_weights,
            )  # fmt: skip
        trained = [*body_parameters, *(p for p in task.head.parameters() if p.requires_grad)]
        taken = processes.begin_sum(task.name, trained, take_gradient(trained), passed.loss)
        if leads:
            if meta_head is None or meta_batch is None:
                raise ValueError("this weighting needs a meta head and a validation batch")
            with held_running_statistics(body):
                if meta_head_batch is not None:
                    passed = _features(body, task, meta_head_batch, passed.loss, reseed, processes)
                meta_head_loss, passed = _meta_backward(
                    body, task, meta_head, meta_batch, passed, body_parameters, reseed, clock,
                    processes,
                )  # fmt: skip
            step.await_meta(
                processes.begin_sum(
                    "meta", body_parameters, take_gradient(body_parameters), passed.loss
                )
            )
            if weighting.weighs_examples:
                effective.append(torch.ones_like(passed.loss))
        step.await_task(index, trained, taken)
        del passed, taken  # or the gradient would live on through the next task's pass
        if not processes.overlaps:
            step.take_in()
    step.take_in()

    if step.held:
        gradients = [kept for kept, _ in step.held]
        if weighting.needs_second_batch:
            if second_batches is None:
                raise ValueError("this weighting needs a second batch of each task")
            products = _products_with_second(
                body, tasks, second_batches, gradients, body_parameters, reseed, dtype, processes
            )
        else:
            products = processes.total(gramian(gradients, dtype))
        reseed("weighting", 0)
        weighting.weigh(products)
        for index, (kept, observation) in enumerate(step.held):
            step.mixture.add(kept, weighting.factor(index, observation))
    weights = weighting.finish()
    squared_norm = step.squared_norm_of_mixture()
    processes.put(body_parameters, step.mixture.gradient)
    return StepRecord(
        losses=torch.stack(step.losses),
        weights=weights.detach().clone(),
        gradient_norms=torch.stack(step.norms),
        squared_norm=squared_norm,
        cosines=torch.stack(step.cosines) if step.cosines else None,
        meta_loss=step.meta().loss if weighting.needs_meta_gradient else None,
        meta_head_loss=meta_head_loss,
        effective_examples=torch.stack(effective) if effective else None,
    )


class _Step:
    """What a step has seen so far; a task is taken in when the one after it has been passed.

    Args:
        body_parameters: entries of a gradient.
        weighting: says what of a task's gradient enters the mixture.
        dtype: accumulation type of inner products.
        processes: see `mixed_gradients`.
        reseed: called before the weighting's first word, which may be drawn: what was drawn before
            differs from process to process.
    """

    def __init__(
        self,
        body_parameters: Sequence[nn.Parameter],
        weighting: Weighting,
        dtype: torch.dtype,
        processes: Processes,
        reseed: Reseed,
    ) -> None:
        self._body, self._weighting, self._reseed = body_parameters, weighting, reseed
        self._dtype, self._processes = dtype, processes
        self.mixture = _Mixture(len(body_parameters), weighting.sums_to_one)
        self.losses: list[Tensor] = []
        self.norms: list[Tensor] = []
        self.cosines: list[Tensor] = []
        self.held: list[tuple[Gradient, Observation]] = []
        self._meta_sum: Callable[[], Summed] | None = None
        self._meta: tuple[Summed, Tensor] | None = None
        self._awaited: tuple[int, Sequence[nn.Parameter], Callable[[], Summed]] | None = None

    def await_meta(self, summed: Callable[[], Summed]) -> None:
        """`summed` will be the meta-gradient."""
        self._meta_sum = summed

    def meta(self) -> Summed:
        """The meta-gradient and the loss on the validation batch."""
        return self._meta_with_norm()[0]

    def await_task(
        self, index: int, trained: Sequence[nn.Parameter], summed: Callable[[], Summed]
    ) -> None:
        """`summed` will be the gradient of task `index` in `trained`: the body's, then its head's.

        The task before it is taken in now.
        """
        self.take_in()
        self._awaited = (index, trained, summed)

    def take_in(self) -> None:
        """Take in the task that is awaited, if there is one."""
        if self._awaited is None:
            return
        (index, trained, wait), self._awaited = self._awaited, None
        summed, count = wait(), len(self._body)
        put_gradient(trained[count:], summed.gradient[count:])
        gradient = summed.gradient[:count]
        squared_norm = self._product(gradient, gradient, summed.loss.device)
        alignment = None
        if self._weighting.needs_meta_gradient:
            meta, meta_norm = self._meta_with_norm()
            product = self._product(meta.gradient, gradient, summed.loss.device)
            alignment = cosine(product, meta_norm, squared_norm)
            self.cosines.append(alignment)
        observation = Observation(summed.loss, squared_norm, alignment)
        if index == 0:
            self._reseed("weighting", 0)
        if self._weighting.needs_gramian:
            self.held.append((gradient, observation))
        else:
            self.mixture.add(gradient, self._weighting.factor(index, observation))
        self.losses.append(summed.loss)
        self.norms.append(squared_norm.sqrt())

    def squared_norm_of_mixture(self) -> Tensor:
        """Of what all tasks were mixed to; a single task's own gradient has been measured."""
        if len(self.norms) == 1 and self._weighting.sums_to_one:
            return self.norms[0].square()
        mixed = self.mixture.gradient
        return self._product(mixed, mixed, self.losses[0].device)

    def _meta_with_norm(self) -> tuple[Summed, Tensor]:
        if self._meta is None:
            assert self._meta_sum is not None, "the end task's pass comes first"
            meta = self._meta_sum()
            norm = self._product(meta.gradient, meta.gradient, meta.loss.device)
            self._meta, self._meta_sum = (meta, norm), None
        return self._meta

    def _product(self, left: Gradient, right: Gradient, device: torch.device) -> Tensor:
        return self._processes.total(dot(left, right, self._dtype, device))


def _backward(
    body: nn.Module,
    task: Task,
    head: nn.Module,
    batch: Batch,
    body_parameters: Sequence[nn.Parameter],
    reseed: Reseed,
    processes: Processes,
    *,
    name: str | None = None,
    head_gradient: bool = True,
    keep: bool = False,
    example_weights: Tensor | None = None,
) -> _Pass:
    """Accumulate the gradient of the task's mean loss over the whole batch in `.grad`.

    Each micro-batch counts by its units, so that the result does not depend on how the batch is
    split, and adds up over processes. With `example_weights` `(examples,)` of the whole batch, the
    body's gradient is that of the weighted loss, the head's that of the plain one, whose value is
    returned.
    """
    head_parameters = [p for p in head.parameters() if p.requires_grad and head_gradient]
    total = batch.units
    weights_of_parts = None
    if example_weights is not None:
        weights_of_parts = torch.split(example_weights, list(batch.examples_of_all))
    losses, features, targets = [], [], []
    with _untrained(head, not head_gradient):
        for number, part in batch.numbered:
            reseed(name or task.name, number)
            part_features = task.objective.features(body, part.inputs)
            part_targets = task.objective.targets(part.inputs)
            unit_losses = task.objective.losses(body, head, part_features, part_targets)
            loss = unit_losses.sum() / total
            if weights_of_parts is None:
                processes.backward(loss, body_parameters, head_parameters)
            else:
                weights = weights_of_parts[number]
                owners = task.objective.owners(part.inputs)
                weighted = (unit_losses * weights[owners]).sum() / total
                backward(weighted, body_parameters, retain_graph=True)
                if head_parameters:
                    backward(loss, head_parameters)
            losses.append(loss.detach())
            if keep:
                features.append(part_features.detach())
                targets.append(part_targets)
        for part in batch.fillers:
            read = task.objective.features(body, part.inputs)
            unit_losses = task.objective.losses(
                body, head, read, task.objective.targets(part.inputs)
            )
            processes.backward(0 * unit_losses.sum(), body_parameters, head_parameters)
    loss = torch.stack(losses).sum() if losses else _zero(body)
    if not keep:
        return _Pass(loss)
    return _Pass(loss, *_joined(task.name, features, targets, batch, processes))


@contextmanager
def _untrained(head: nn.Module, untrained: bool) -> Iterator[None]:
    """Let a head's parameters need no gradient inside, if `untrained`."""
    held = [p for p in head.parameters() if p.requires_grad and untrained]
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)


def _zero(body: nn.Module) -> Tensor:
    """The loss of no examples: those of a process that has none of a batch."""
    parameter = next(body.parameters())
    dtype = torch.promote_types(parameter.dtype, torch.float32)
    return torch.zeros((), dtype=dtype, device=parameter.device)


def _joined(
    name: str,
    features: Sequence[Tensor],
    targets: Sequence[Tensor],
    batch: Batch,
    processes: Processes,
) -> tuple[Tensor, Tensor]:
    """The whole batch's features and targets."""
    sizes = batch.units_of_all
    return (
        processes.gather(f"features {name}", features, batch, sizes),
        processes.gather(f"targets {name}", targets, batch, sizes),
    )


def _weights_of_examples(
    body: nn.Module,
    task: Task,
    batch: Batch,
    direction: Gradient,
    weighting: Weighting,
    reseed: Reseed,
    processes: Processes,
) -> Tensor:
    """What the weighting gives each example of the whole batch, shape `(examples,)`."""
    alignments, units = example_alignments(body, task, batch, direction, reseed)
    sizes = batch.examples_of_all
    return weighting.weigh_examples(
        processes.gather(f"alignments {task.name}", alignments, batch, sizes),
        processes.gather(f"counts {task.name}", units, batch, sizes),
    )


def _effective_share(weights: Tensor) -> Tensor:
    """Kish's effective sample size, as a share of the examples."""
    return weights.sum().square() / (len(weights) * weights.square().sum())


def _products_with_second(
    body: nn.Module,
    tasks: Sequence[Task],
    batches: Mapping[str, Batch],
    gradients: Sequence[Gradient],
    body_parameters: Sequence[nn.Parameter],
    reseed: Reseed,
    dtype: torch.dtype,
    processes: Processes,
) -> Tensor:
    """`<g_i, g'_j>`, shape `(tasks, tasks)`: `g_i` as given, `g'_j` of task `j`'s second batch."""
    columns = []
    with held_running_statistics(body):
        for task in tasks:
            name = f"second {task.name}"
            passed = _backward(
                body, task, task.head, batches[task.name], body_parameters, reseed, processes,
                name=name, head_gradient=False,
            )  # fmt: skip
            taken = take_gradient(body_parameters)
            second = processes.begin_sum(name, body_parameters, taken, passed.loss)().gradient
            columns.append(torch.stack([dot(first, second, dtype) for first in gradients]))
    return processes.total(torch.stack(columns, dim=1))


@torch.no_grad()
def _features(
    body: nn.Module,
    task: Task,
    batch: Batch,
    loss: Tensor,
    reseed: Reseed,
    processes: Processes,
) -> _Pass:
    """What the meta head is fitted on, where it is not the task's own batch; `loss` is kept."""
    features, targets = [], []
    for number, part in batch.numbered:
        reseed("meta_head_features", number)
        features.append(task.objective.features(body, part.inputs))
        targets.append(task.objective.targets(part.inputs))
    for part in batch.fillers:
        task.objective.features(body, part.inputs)
    return _Pass(loss, *_joined("meta_head", features, targets, batch, processes))


def _meta_backward(
    body: nn.Module,
    end_task: Task,
    meta_head: MetaHead,
    meta_batch: Batch,
    end_pass: _Pass,
    body_parameters: Sequence[nn.Parameter],
    reseed: Reseed,
    clock: AbstractContextManager[object],
    processes: Processes,
) -> tuple[Tensor | None, _Pass]:
    """Leave `g_meta` in the body's `.grad`: `(meta head's loss, the pass)`."""
    if meta_head.settings.kind == "shared":
        head, head_loss = end_task.head, None
    else:
        if end_pass.features is None or end_pass.targets is None:
            raise ValueError("the end task's pass must keep its features for the meta head")
        reseed("meta_head", 0)
        head_loss = meta_head.fit(body, end_task.objective, end_pass.features, end_pass.targets)
        head = meta_head.head
    with clock:
        passed = _backward(
            body, end_task, head, meta_batch, body_parameters, reseed, processes,
            name="meta", head_gradient=False,
        )  # fmt: skip
    return head_loss, passed
