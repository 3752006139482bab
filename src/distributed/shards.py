"""Processes that each hold a shard of the body's parameters (FSDP2), and whole heads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from src.core.backward import backward
from src.core.gradients import Gradient, put_gradient
from src.core.processes import Summed
from src.core.task import Batch
from src.distributed.replicas import Replicas
from src.distributed.states import whole_state


class Shards:
    """The processes of torch's default group (see `src.core.processes.Processes`).

    A gradient of the body here is that of the shard that is here: `backward` has summed it over the
    processes. Heads are summed as replicas are.
    """

    overlaps = False

    def __init__(self) -> None:
        self._replicas = Replicas()
        self.rank, self.count = self._replicas.rank, self._replicas.count

    @property
    def summed_bytes(self) -> int:
        """Of what was summed or gathered beside the body's gradients."""
        return self._replicas.summed_bytes

    def begin_sum(
        self, name: str, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        whole = [i for i, p in enumerate(parameters) if not isinstance(p, DTensor)]
        wait = self._replicas.begin_sum(
            name, [parameters[i] for i in whole], [gradient[i] for i in whole], loss
        )
        local: Gradient = [g.to_local() if isinstance(g, DTensor) else g for g in gradient]

        def waited() -> Summed:
            summed = wait()
            for index, value in zip(whole, summed.gradient, strict=True):
                local[index] = value
            return Summed(local, summed.loss)

        return waited

    def backward(
        self, loss: Tensor, body: Sequence[nn.Parameter], head: Sequence[nn.Parameter]
    ) -> None:
        backward(loss)  # of all leaves: the graph's are not the shards

    def total(self, products: Tensor) -> Tensor:
        whole = products.clone()
        distributed.all_reduce(whole)
        return whole

    def put(self, parameters: Sequence[nn.Parameter], gradient: Gradient) -> None:
        put_gradient(
            parameters,
            [
                None if value is None else _like(parameter, value)
                for parameter, value in zip(parameters, gradient, strict=True)
            ],
        )

    def gather(
        self, name: str, parts: Sequence[Tensor], batch: Batch, sizes: Sequence[int]
    ) -> Tensor:
        return self._replicas.gather(name, parts, batch, sizes)

    def average_(self, tensors: Sequence[Tensor]) -> None:
        """See `Replicas.average_`."""
        self._replicas.average_(tensors)


def shard(body: nn.Module, mesh: DeviceMesh) -> None:
    """Shard a body's layers, each by itself, and what is left of it; one that is sharded stays.

    Gradients are summed, not averaged: a process's loss is already its share of the batch's.
    """
    if isinstance(body, FSDPModule):
        return
    form = _form_of(body)
    layers = [m for m in body.modules() if isinstance(m, nn.ModuleList)]
    for layer in layers[0] if layers else ():
        fully_shard(layer, mesh=mesh)
    fully_shard(body, mesh=mesh)
    for module in body.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    body.__dict__[_FORM] = form


def unshard(body: nn.Module) -> None:
    """Let a sharded body be whole again, in the main process's memory, to be written.

    Every process has to ask; in the others it is nothing afterwards.
    """
    if not isinstance(body, FSDPModule):
        return
    state = whole_state(body)
    form: nn.Module = body.__dict__.pop(_FORM)
    if state:
        form.load_state_dict(state, assign=True)
    # in place: encoder and module hold the same body
    body.__class__, body.__dict__ = form.__class__, form.__dict__  # type: ignore[assignment]


_FORM = "_tartan_form"
"""Where a sharded body keeps what it was, without its parameters."""


def _form_of(body: nn.Module) -> nn.Module:
    """A copy whose parameters take no memory."""
    empty = {
        id(p): nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad)
        for p in body.parameters()
    }
    return copy.deepcopy(body, empty)  # type: ignore[arg-type]


def _like(parameter: nn.Parameter, value: Tensor) -> Tensor:
    assert isinstance(parameter, DTensor)
    return DTensor.from_local(
        value, parameter.device_mesh, parameter.placements,
        run_check=False, shape=parameter.shape, stride=parameter.stride(),
    )  # fmt: skip
