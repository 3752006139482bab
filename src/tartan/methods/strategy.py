"""Lightning's strategies for several processes, with replicas or shards of the model."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from lightning.fabric.utilities.imports import _IS_INTERACTIVE
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from omegaconf import DictConfig
from torch import distributed

from tartan.errors import UserError
from tartan.methods.launch import torchrun_processes

T = TypeVar("T")


class ReplicaStrategy(DDPStrategy):
    """Lightning's DDP strategy without `DistributedDataParallel`.

    That wrapper sums gradients when `backward` of a whole loss ends; it does not see the gradients
    of single tasks, whose inner products are taken before they are combined. So the model is not
    wrapped, all processes start from the first one's parameters, and `tartan.methods.replicas`
    sums each task's gradient.

    In a notebook, processes are forked by default, as by Lightning's `ddp_notebook`; else they are
    started anew. For options see `DDPStrategy`.
    """

    def __init__(self, **options: Any) -> None:
        if _IS_INTERACTIVE:
            options = {"start_method": "fork", **options}
        super().__init__(**options)

    def configure_ddp(self) -> None:
        """Start from the first process's parameters and buffers."""
        assert self.model is not None
        # not the state dict: a TorchJD weighting keeps bytes there on the CPU, out of NCCL's reach
        for tensor in (*self.model.parameters(), *self.model.buffers()):
            distributed.broadcast(tensor.detach(), 0)


class ShardStrategy(ModelParallelStrategy):
    """Lightning's FSDP2: each process holds a shard of the body; checkpoints are single files."""

    def __init__(self) -> None:
        super().__init__(save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        """Share one body among all processes."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        self._tensor_parallel_size = 1
        super().setup_environment()


def strategy_of(settings: DictConfig) -> Strategy | str:
    """Return Lightning's strategy for the settings in `conf/trainer/`."""
    name, devices, nodes = (
        settings.get(option, default)
        for option, default in (("strategy", "auto"), ("devices", 1), ("num_nodes", 1))
    )
    _check_torchrun(devices, nodes)
    several = devices not in (1, "1") or nodes != 1
    if name == "ddp" or (name == "auto" and several):
        return ReplicaStrategy()
    if name in ("auto", "single_device"):
        return str(name)
    return ShardStrategy()


def _check_torchrun(devices: Any, nodes: Any) -> None:
    outside = torchrun_processes()
    if outside is None or not isinstance(devices, int) or not isinstance(nodes, int):
        return
    if outside != devices * nodes:
        raise UserError(
            f"torchrun has started {outside} processes, but trainer.devices={devices} and "
            f"trainer.num_nodes={nodes} make {devices * nodes}; make them agree"
        )


class Agreement:
    """Collective operations on small values of the host, which all processes call in one order.

    A single process gets its own value back. If a process has died, the others' next call fails at
    once: it goes over sockets, also where gradients go over NCCL, which would wait for the process.
    """

    def __init__(self) -> None:
        self._group: distributed.ProcessGroup | None = None

    @property
    def is_main(self) -> bool:
        """Whether this process is the first of the run, or the only one."""
        return not _several() or distributed.get_rank() == 0

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.highest(0)

    def highest(self, number: int) -> int:
        """Return the highest of all processes' numbers."""
        if not _several():
            return number
        said = torch.tensor([number])
        distributed.all_reduce(said, distributed.ReduceOp.MAX, group=self._sockets())
        return int(said)

    def values_of_all(self, value: T) -> list[T]:
        """Return the value of each process, in their order."""
        if not _several():
            return [value]
        said: list[T] = [value] * distributed.get_world_size()
        distributed.all_gather_object(said, value, group=self._sockets())
        return said

    def _sockets(self) -> distributed.ProcessGroup:
        """The group of connections, made by the first call, which all processes make."""
        if self._group is None:
            self._group = distributed.new_group(backend="gloo")
        return self._group


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized()
