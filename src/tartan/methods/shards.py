"""Processes that each hold a shard of the body's parameters (FSDP2), and whole heads."""

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, distributed, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from tartan.core.body import Summed, frozen_running_statistics
from tartan.core.device import without_autocast
from tartan.core.gradients import Gradient, put_gradient
from tartan.core.task import Batch, MicroBatch
from tartan.methods.strategy import ReplicatedBody

_FORM = "_tartan_form"  # attribute of a sharded body: its unsharded form without values


class ShardedBody(ReplicatedBody):
    """A body of which each process holds a shard, whose gradient `backward` sums over all."""

    overlaps = False

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The shards of this process; what passes left gathered is freed."""
        reshard(self.module)
        return super().parameters

    def backward(self, loss: Tensor, into: Sequence[nn.Parameter]) -> None:
        """Add the gradient to `.grad` of all leaves: leaves of the graph are not the shards."""
        with without_autocast(loss.device):
            torch.autograd.backward(loss)

    def fill_up(self, batch: Batch, loss_of: Callable[[MicroBatch], Tensor]) -> None:
        """Take the passes that other processes need, with a gradient of zero."""
        with frozen_running_statistics(self.module):
            for part in batch.fillers:
                loss = 0 * loss_of(part)
                if loss.requires_grad:
                    self.backward(loss, [])

    def begin_sum(
        self, key: Hashable, parameters: Sequence[nn.Parameter], gradient: Gradient, loss: Tensor
    ) -> Callable[[], Summed]:
        """Sum the heads' gradients; the body's was summed by `backward`."""
        whole = [i for i, p in enumerate(parameters) if not isinstance(p, DTensor)]
        wait = super().begin_sum(
            key, [parameters[i] for i in whole], [gradient[i] for i in whole], loss
        )
        local: Gradient = [g.to_local() if isinstance(g, DTensor) else g for g in gradient]

        def waited() -> Summed:
            summed = wait()
            for index, value in zip(whole, summed.gradient, strict=True):
                local[index] = value
            return Summed(local, summed.loss)

        return waited

    def total(self, products: Tensor) -> Tensor:
        whole = products.clone()
        distributed.all_reduce(whole)
        return whole

    def put(self, gradient: Gradient) -> None:
        parameters = self.parameters
        whole = [
            value if value is None else DTensor.from_local(
                value, parameter.device_mesh, parameter.placements,
                run_check=False, shape=parameter.shape, stride=parameter.stride(),
            )
            for parameter, value in zip(parameters, gradient, strict=True)
            if isinstance(parameter, DTensor)
        ]  # fmt: skip
        put_gradient(parameters, whole)


def fresh_casts(device: torch.device) -> AbstractContextManager[object]:
    """Keep no casts of parameters, which are other tensors in each pass of a sharded layer."""
    kind = device.type
    return torch.autocast(
        kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind), cache_enabled=False
    )


def shard(body: nn.Module, mesh: DeviceMesh) -> None:
    """Shard a body's layers, each by itself, and the rest of it; do nothing if it is sharded."""
    if isinstance(body, FSDPModule):
        return
    empty = {
        id(p): nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad)
        for p in body.parameters()
    }
    form = copy.deepcopy(body, empty)  # type: ignore[arg-type]
    layers = [m for m in body.modules() if isinstance(m, nn.ModuleList)]
    for layer in layers[0] if layers else ():
        fully_shard(layer, mesh=mesh)
    fully_shard(body, mesh=mesh)
    for module in body.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # a loss is its share of the batch's already
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    body.__dict__[_FORM] = form


def whole_copy(body: nn.Module) -> nn.Module:
    """Return a sharded body whole; all processes call this, and only the main one gets values."""
    if not isinstance(body, FSDPModule):
        return body
    state = whole_state(body)
    form: nn.Module = copy.deepcopy(body.__dict__[_FORM])
    if state:
        form.load_state_dict(state, assign=True)
    return form


def is_sharded(module: nn.Module) -> bool:
    """Return whether some of the module's parameters are in other processes."""
    return any(isinstance(part, FSDPModule) for part in module.modules())


def whole_state(module: nn.Module) -> dict[str, Tensor]:
    """Return copies of parameters and buffers on the CPU; sharded ones in the main process only."""
    if is_sharded(module):
        reshard(module)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = get_model_state_dict(module, options=options)
    else:
        state = module.state_dict()
    return {n: v.detach().cpu().clone() for n, v in state.items() if isinstance(v, Tensor)}


def load_whole_state(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the main process's result of `whole_state`, or a checkpoint's `state_dict`."""
    if is_sharded(module):
        reshard(module)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(module, dict(state), options=options)
    else:
        module.load_state_dict(state)


def reshard(module: nn.Module) -> None:
    """Reshard what a forward pass without a backward pass has left gathered."""
    for part in module.modules():
        if isinstance(part, FSDPModule):
            part.reshard()
