"""Tells this process's rank in its run, from its launcher's environment variables.

Nothing heavy is imported here, because the command line asks before anything else is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Environment variables with a process's number, of torchrun, Lightning and srun; the first one set
counts.
"""


def is_main_process(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether this process writes the run's files and prints messages.

    On a further node that Lightning was started on by hand (`NODE_RANK` above 0), no process does.
    """
    given = os.environ if environment is None else environment
    if "RANK" not in given and given.get("NODE_RANK", "0") != "0":
        return False
    for name in _RANKS:
        if name in given:
            return given[name] == "0"
    return True


def torchrun_processes(environment: Mapping[str, str] | None = None) -> int | None:
    """Return the number of processes that torchrun has started; None without torchrun."""
    given = os.environ if environment is None else environment
    return int(given["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in given else None
