"""Lightning's strategies for several processes, with replicas or shards of the model."""

from __future__ import annotations

from typing import Any

from lightning.fabric.utilities.imports import _IS_INTERACTIVE
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from omegaconf import DictConfig
from torch import distributed

from tartan.distributed.identity import torchrun_processes
from tartan.errors import UserError


class ReplicaStrategy(DDPStrategy):
    """Lightning's DDP strategy without `DistributedDataParallel`.

    That wrapper sums gradients when `backward` of a whole loss ends; it does not see the gradients
    of single tasks, whose inner products are taken before they are combined. So the model is not
    wrapped, all processes start from the first one's parameters, and `tartan.distributed.replicas`
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
    """Return Lightning's strategy for the settings in `conf/trainer/`.

    Raises:
        UserError: torchrun has started another number of processes.
    """
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
