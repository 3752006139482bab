"""Messages among the processes of a run on the host, without waiting for any device."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import distributed

T = TypeVar("T")


class Agreement:
    """Questions that every process asks at the same point; alone, a process answers itself.

    A process that has died makes the others' next question an error, at once: this goes over
    sockets, also where gradients go over NCCL, which would wait for it.
    """

    def __init__(self) -> None:
        self._group: distributed.ProcessGroup | None = None

    def highest(self, number: int) -> int:
        """Return the highest number that any process says."""
        if not _several():
            return number
        said = torch.tensor([number])
        distributed.all_reduce(said, distributed.ReduceOp.MAX, group=self._sockets())
        return int(said)

    def everyones(self, value: T) -> list[T]:
        """Return the value of each process, in their order."""
        if not _several():
            return [value]
        said: list[T] = [value] * distributed.get_world_size()
        distributed.all_gather_object(said, value, group=self._sockets())
        return said

    def _sockets(self) -> distributed.ProcessGroup:
        """Connected by the first question, which all processes ask."""
        if self._group is None:
            self._group = distributed.new_group(backend="gloo")
        return self._group


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized()
