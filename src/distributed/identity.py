"""The rank of this process in its run, from its launcher's environment variables.

Nothing heavy is imported here: the command line asks before anything else is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""Where torchrun, Lightning's launcher and srun write the number of a process, first come first."""


def is_main_process(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether this process is the one that writes a run's files and speaks to its user.

    The first of a node that Lightning was started on by hand (`NODE_RANK` above 0) is not.
    """
    given = os.environ if environment is None else environment
    if "RANK" not in given and given.get("NODE_RANK", "0") != "0":
        return False
    for name in _RANKS:
        if name in given:
            return given[name] == "0"
    return True


def started_from_outside(environment: Mapping[str, str] | None = None) -> int | None:
    """Return how many processes torchrun has started; None where it has not."""
    given = os.environ if environment is None else environment
    return int(given["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in given else None
