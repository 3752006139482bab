"""The processes that a run starts for itself, from its first training step to its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed

from src.distributed.identity import started_from_outside
from src.errors import UserError

_LAUNCHERS = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""What Lightning's launcher leaves in the environment, from which it would conclude later that
processes exist already."""


@contextmanager
def own_processes() -> Iterator[None]:
    """Around a run: leave nothing of its processes to the next run of a sweep.

    Raises:
        UserError: a process of the run has died.
    """
    before = {name: os.environ.get(name) for name in _LAUNCHERS}
    try:
        yield
    except RuntimeError as error:
        if _lost_another(error):
            raise UserError(
                "another process of this run has ended unexpectedly (killed, or out of memory?); "
                "the same command goes on from the last checkpoint"
            ) from error
        raise
    finally:
        if started_from_outside() is None and distributed.is_initialized():
            distributed.destroy_process_group()
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)


def _lost_another(error: RuntimeError) -> bool:
    told = isinstance(error, distributed.DistError) or "gloo" in str(error)
    return told and distributed.is_initialized()
