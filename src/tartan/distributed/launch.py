"""Cleans up after the processes that a run starts for itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch import distributed

from tartan.distributed.identity import torchrun_processes
from tartan.errors import UserError

_LAUNCHERS = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Environment variables that Lightning's launcher leaves, from which it would later conclude that
processes exist already.
"""


@contextmanager
def clean_processes() -> Iterator[None]:
    """Leave nothing of a run's processes to the next run of a sweep.

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
                "run the same command to continue from the last checkpoint"
            ) from error
        raise
    finally:
        if torchrun_processes() is None:
            if distributed.is_initialized():
                distributed.destroy_process_group()
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _lost_another(error: RuntimeError) -> bool:
    told = isinstance(error, distributed.DistError) or "gloo" in str(error)
    return told and distributed.is_initialized()
