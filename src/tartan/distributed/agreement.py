"""Exchanges values among the processes of a run on the host, without waiting for a device."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import distributed

T = TypeVar("T")


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
