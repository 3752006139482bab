"""Tells this process's rank in its run, from its launcher's environment variables.

Nothing heavy is imported here, because the command line asks before anything else is loaded.
"""

from __future__ import annotations

import os

_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Environment variables with a process's number, of torchrun, Lightning and srun; the first one set
counts.
"""


def is_main_process() -> bool:
    """Return whether this process writes the run's files and prints messages.

    On a further node that Lightning was started on by hand (`NODE_RANK` above 0), no process does.
    """
    if "RANK" not in os.environ and os.environ.get("NODE_RANK", "0") != "0":
        return False
    for name in _RANKS:
        if name in os.environ:
            return os.environ[name] == "0"
    return True


def torchrun_processes() -> int | None:
    """Return the number of processes that torchrun has started; None without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else None
