"""Lightning's strategies for several processes, with replicas or shards of the model."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from lightning.fabric.utilities.imports import _IS_INTERACTIVE
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy
from torch import distributed

T = TypeVar("T")


class ReplicaStrategy(DDPStrategy):
    """Lightning's DDP strategy and options, without `DistributedDataParallel`.

    That wrapper sums gradients when `backward` of a whole loss ends, and does not see those of
    single tasks; `tartan.methods.replicas` sums each. In a notebook, processes are forked.
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
        self._data_parallel_size = self.num_nodes * self.num_processes
        self._tensor_parallel_size = 1
        super().setup_environment()


class Agreement:
    """Collective operations on small values of the host, which all processes call in one order.

    If a process has died, the others' next call fails at once: it goes over sockets, also where
    gradients go over NCCL, which would wait for the process.
    """

    def __init__(self) -> None:
        self._group: distributed.ProcessGroup | None = None

    @property
    def is_main(self) -> bool:
        return not distributed.is_initialized() or distributed.get_rank() == 0

    def wait(self) -> None:
        self.highest(0)

    def highest(self, number: int) -> int:
        if not distributed.is_initialized():
            return number
        highest = torch.tensor([number])
        distributed.all_reduce(highest, distributed.ReduceOp.MAX, group=self._sockets())
        return int(highest)

    def values_of_all(self, value: T) -> list[T]:
        """Return the value of each process, in their order."""
        if not distributed.is_initialized():
            return [value]
        values: list[T] = [value] * distributed.get_world_size()
        distributed.all_gather_object(values, value, group=self._sockets())
        return values

    def _sockets(self) -> distributed.ProcessGroup:
        if self._group is None:  # in the first call, which all processes make
            self._group = distributed.new_group(backend="gloo")
        return self._group
