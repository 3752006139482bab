"""The processes of a run: which one this is, what they are started with, how they end.

Nothing heavy is imported here, because the command line asks before anything else is loaded.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from tartan.errors import UserError

_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Variables with a process's number, of torchrun, Lightning and srun; the first one set counts."""
_OF_LIGHTNING = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Variables that Lightning's launcher leaves, and would take for those of torchrun."""
ABORTED = "sums under way were aborted"
"""Note on an exception that ended a process group of NCCL."""


def is_main_process() -> bool:
    """Return whether this process writes the run's files and prints messages."""
    if "RANK" not in os.environ and os.environ.get("NODE_RANK", "0") != "0":
        return False
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), "0")
    return rank == "0"


def torchrun_processes() -> int | None:
    """Return the number of processes that torchrun has started; None without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else None


@contextmanager
def processes_get_arguments(arguments: Sequence[str]) -> Iterator[None]:
    """Give `arguments`, not those of a whole sweep, to processes that Lightning starts."""
    before, sys.argv = sys.argv, [sys.argv[0], *arguments]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def clean_processes() -> Iterator[None]:
    """Leave nothing of a run's processes to the next run of a sweep."""
    from torch import distributed

    before = {name: os.environ.get(name) for name in _OF_LIGHTNING}
    try:
        yield
    except RuntimeError as error:
        lost = isinstance(error, distributed.DistError) or "gloo" in str(error)
        # not in a rendezvous that failed
        if lost and (distributed.is_initialized() or ABORTED in getattr(error, "__notes__", ())):
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


@cache
def end_with(process: int) -> None:
    """End this process, with exit code 1, as soon as `process`, which started it, is gone."""

    def follow() -> None:
        while os.getppid() == process:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
