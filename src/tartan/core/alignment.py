"""Each example's alignment with the meta-gradient, by forward-mode derivatives."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tartan.core.body import frozen_running_statistics
from tartan.core.device import without_autocast
from tartan.core.gradients import Gradient
from tartan.core.task import Batch, Inputs, Task


def example_alignments(
    body: nn.Module,
    task: Task,
    batch: Batch,
    direction: Gradient,
    seed: Callable[[int], None],
) -> tuple[list[Tensor], list[Tensor]]:
    """Return `<direction, grad l_j>` over the body for each example's mean loss `l_j`.

    One forward-mode product per micro-batch gives the derivatives of all its examples' losses along
    `direction`; reverse mode would need a pass for each example. Nothing is kept for a
    backward pass. The fused attention kernels have no forward mode, so attention is computed by
    plain matrix products here, and all of it in the parameters' own precision: behind a norm whose
    parameters are wider than its input, autocast would give values and derivatives of two types.
    With dropout off the losses are those of the pass that follows, up to rounding; with it on they
    may have another mask.

    Args:
        direction: an entry for each of the body's trainable parameters; None counts as zero.
        seed: called with a micro-batch's number before its pass, to seed its random draws.

    Returns:
        Alignments and numbers of units, both of shape `(examples,)`, of each micro-batch of this
        process. An example without units has alignment 0.
    """
    parameters = {f"body.{n}": p.detach() for n, p in body.named_parameters() if p.requires_grad}
    tangents = {
        name: torch.zeros_like(parameter) if along is None else along.to(parameter.dtype)
        for (name, parameter), along in zip(parameters.items(), direction, strict=True)
    }
    device = next(iter(parameters.values())).device
    alignments, units = [], []
    with (
        torch.no_grad(),
        without_autocast(device),
        frozen_running_statistics(body),
        sdpa_kernel(SDPBackend.MATH),
    ):
        for number, part in batch.numbered:
            losses = _ExampleLosses(body, task, part.inputs, part.examples)
            seed(number)
            derivatives = torch.func.jvp(
                lambda values, of=losses: torch.func.functional_call(of, values, ()),
                (parameters,), (tangents,),
            )[1]  # fmt: skip
            alignments.append(derivatives)
            units.append(losses.units)
    return alignments, units


class _ExampleLosses(nn.Module):
    """Mean losses of a micro-batch's examples, `(examples,)`, for `functional_call`."""

    def __init__(self, body: nn.Module, task: Task, inputs: Inputs, examples: int) -> None:
        super().__init__()
        self.body, self._task, self._inputs = body, task, inputs
        self._owners = task.objective.owners(inputs)
        ones = torch.ones(len(self._owners), device=self._owners.device)
        self.units = ones.new_zeros(examples).index_add(0, self._owners, ones)

    def forward(self) -> Tensor:
        objective, head = self._task.objective, self._task.head
        features = objective.features(self.body, self._inputs)
        losses = objective.losses(self.body, head, features, objective.targets(self._inputs))
        sums = losses.new_zeros(len(self.units)).index_add(0, self._owners, losses)
        return sums / self.units.clamp(min=1)
