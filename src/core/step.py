"""One training step of any method: a set of tasks, their batches, and a weighting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from src.core.alignment import example_alignments
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
from src.core.running_statistics import held_running_statistics
from src.core.task import Batch, Task
from src.core.weighting.base import Observation, Weighting

Reseed = Callable[[str, int], None]


@dataclass(frozen=True)
class StepRecord:
    """What one step did; every field is a detached tensor on the device, shape `(tasks,)` or `()`.

    `cosines`, `meta_loss` and `meta_head_loss` are None without a meta-gradient;
    `effective_examples` is None where examples are not weighed, and otherwise the share of each
    task's examples that would, equally weighted, vary as much: `(sum w)^2 / (n sum w^2)`.
    """

    losses: Tensor
    weights: Tensor
    gradient_norms: Tensor
    cosines: Tensor | None = None
    meta_loss: Tensor | None = None
    meta_head_loss: Tensor | None = None
    effective_examples: Tensor | None = None


@dataclass(frozen=True)
class _Pass:
    """A task's loss and, where they were asked for, what its head read and should have said."""

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
) -> StepRecord:
    """Fill `.grad` of the body with `sum_i alpha_i g_i`, and of each head with its own gradient.

    Paper: Algorithm 1. Head gradients are unweighted. Where the weighting needs the meta-gradient,
    the end task is `tasks[0]`: its pass comes first, its features fit the meta head (unless other
    examples are given for that), and the meta-gradient is then there for every task's cosine.
    Three body-sized buffers are held (the mixed, the meta and the current gradient), whatever the
    number of tasks; a weighting that needs the Gramian holds every task's gradient.

    Args:
        batches: one batch for each task, by name.
        reseed: called with a name and a micro-batch's index before each pass, to seed dropout.
        meta_batch: the end task's validation batch `B_val`.
        meta_head_batch: training examples of the end task to fit the meta head on; None takes those
            of its batch.
        second_batches: batches drawn independently of `batches`, for weightings that need such.
        dtype: accumulation type of inner products.
        clock: entered for each task's pass and for that of the meta-gradient.

    Raises:
        ValueError: the weighting needs a meta-gradient, but there is no meta head or batch; or a
            second batch, and there is none.
    """
    clock = clock or nullcontext()
    body_parameters = [p for p in body.parameters() if p.requires_grad]
    for parameter in [*body_parameters, *(p for task in tasks for p in task.head.parameters())]:
        parameter.grad = None  # what is left in there would count as the first task's
    mixture = _Mixture(len(body_parameters), weighting.sums_to_one)
    meta_gradient: Gradient | None = None
    meta_norm = meta_loss = meta_head_loss = None
    losses: list[Tensor] = []
    norms: list[Tensor] = []
    cosines: list[Tensor] = []
    effective: list[Tensor] = []
    held: list[tuple[Gradient, Observation]] = []

    for index, task in enumerate(tasks):
        leads = index == 0 and weighting.needs_meta_gradient
        batch = batches[task.name]
        example_weights = None
        if weighting.weighs_examples and meta_gradient is not None:
            aligned = example_alignments(body, task, batch, meta_gradient, reseed)
            example_weights = weighting.weigh_examples(*aligned)
            effective.append(_effective_share(example_weights))
        with clock:
            passed = _backward(
                body, task, task.head, batch, body_parameters, reseed,
                keep=leads and meta_head_batch is None, example_weights=example_weights,
            )  # fmt: skip
        gradient = take_gradient(body_parameters)
        if leads:
            if meta_head is None or meta_batch is None:
                raise ValueError("this weighting needs a meta head and a validation batch")
            with held_running_statistics(body):
                if meta_head_batch is not None:
                    passed = _features(body, task, meta_head_batch, passed.loss, reseed)
                meta_head_loss, meta_loss = _meta_backward(
                    body, task, meta_head, meta_batch, passed, body_parameters, reseed, clock
                )
            meta_gradient = take_gradient(body_parameters)
            meta_norm = dot(meta_gradient, meta_gradient, dtype)
            if weighting.weighs_examples:
                effective.append(torch.ones_like(passed.loss))

        squared_norm = dot(gradient, gradient, dtype, passed.loss.device)
        alignment = None
        if meta_gradient is not None and meta_norm is not None:
            alignment = cosine(dot(meta_gradient, gradient, dtype), meta_norm, squared_norm)
            cosines.append(alignment)
        observation = Observation(passed.loss, squared_norm, alignment)
        if weighting.needs_gramian:
            held.append((gradient, observation))
        else:
            mixture.add(gradient, weighting.factor(index, observation))
        losses.append(passed.loss)
        norms.append(squared_norm.sqrt())
        del gradient, passed

    if held:
        gradients = [kept for kept, _ in held]
        if weighting.needs_second_batch:
            if second_batches is None:
                raise ValueError("this weighting needs a second batch of each task")
            products = _products_with_second(
                body, tasks, second_batches, gradients, body_parameters, reseed, dtype
            )
        else:
            products = gramian(gradients, dtype)
        weighting.weigh(products)
        for index, (kept, observation) in enumerate(held):
            mixture.add(kept, weighting.factor(index, observation))
    weights = weighting.finish()
    put_gradient(body_parameters, mixture.gradient)
    return StepRecord(
        losses=torch.stack(losses),
        weights=weights.detach().clone(),
        gradient_norms=torch.stack(norms),
        cosines=torch.stack(cosines) if cosines else None,
        meta_loss=meta_loss,
        meta_head_loss=meta_head_loss,
        effective_examples=torch.stack(effective) if effective else None,
    )


def _backward(
    body: nn.Module,
    task: Task,
    head: nn.Module,
    batch: Batch,
    body_parameters: Sequence[nn.Parameter],
    reseed: Reseed,
    *,
    name: str | None = None,
    head_gradient: bool = True,
    keep: bool = False,
    example_weights: Tensor | None = None,
) -> _Pass:
    """Accumulate the gradient of the task's mean loss over the whole batch in `.grad`.

    Each micro-batch counts by its units, so that the result does not depend on how the batch is
    split. With `example_weights` `(examples,)`, the body's gradient is that of the weighted loss,
    the head's that of the plain one, whose value is returned.
    """
    head_parameters = [p for p in head.parameters() if p.requires_grad and head_gradient]
    total = batch.units
    losses, features, targets = [], [], []
    first_example = 0
    for index, part in enumerate(batch.micro_batches):
        reseed(name or task.name, index)
        part_features = task.objective.features(body, part.inputs)
        part_targets = task.objective.targets(part.inputs)
        unit_losses = task.objective.losses(body, head, part_features, part_targets)
        loss = unit_losses.sum() / total
        if example_weights is None:
            torch.autograd.backward(loss, inputs=[*body_parameters, *head_parameters])
        else:
            weights = example_weights[first_example : first_example + part.examples]
            owners = task.objective.owners(part.inputs)
            weighted = (unit_losses * weights[owners]).sum() / total
            torch.autograd.backward(weighted, inputs=list(body_parameters), retain_graph=True)
            if head_parameters:
                torch.autograd.backward(loss, inputs=head_parameters)
            first_example += part.examples
        losses.append(loss.detach())
        if keep:
            features.append(part_features.detach())
            targets.append(part_targets)
    loss = torch.stack(losses).sum()
    return _Pass(loss, torch.cat(features), torch.cat(targets)) if keep else _Pass(loss)


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
) -> Tensor:
    """`<g_i, g'_j>`, shape `(tasks, tasks)`: `g_i` as given, `g'_j` of task `j`'s second batch."""
    columns = []
    with held_running_statistics(body):
        for task in tasks:
            _backward(
                body, task, task.head, batches[task.name], body_parameters, reseed,
                name=f"second {task.name}", head_gradient=False,
            )  # fmt: skip
            second = take_gradient(body_parameters)
            columns.append(torch.stack([dot(first, second, dtype) for first in gradients]))
    return torch.stack(columns, dim=1)


@torch.no_grad()
def _features(body: nn.Module, task: Task, batch: Batch, loss: Tensor, reseed: Reseed) -> _Pass:
    """What the meta head is fitted on, where it is not the task's own batch; `loss` is kept."""
    features, targets = [], []
    for index, part in enumerate(batch.micro_batches):
        reseed("meta_head_features", index)
        features.append(task.objective.features(body, part.inputs))
        targets.append(task.objective.targets(part.inputs))
    return _Pass(loss, torch.cat(features), torch.cat(targets))


def _meta_backward(
    body: nn.Module,
    end_task: Task,
    meta_head: MetaHead,
    meta_batch: Batch,
    end_pass: _Pass,
    body_parameters: Sequence[nn.Parameter],
    reseed: Reseed,
    clock: AbstractContextManager[object],
) -> tuple[Tensor | None, Tensor]:
    """Leave `g_meta` in the body's `.grad`: `(meta head's loss, loss on the validation batch)`."""
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
            body, end_task, head, meta_batch, body_parameters, reseed,
            name="meta", head_gradient=False,
        )  # fmt: skip
    return head_loss, passed.loss
