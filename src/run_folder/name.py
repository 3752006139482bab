"""The folder of a run, named by what differs: the same command, the same folder."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence

ELSEWHERE = (
    "data_dir",
    "cache_dir",
    "paths",
    "num_workers",
    "logger",
    "hydra",
    "run",
    "resume",
    "checkpoint_minutes",
    "trainer.enable_progress_bar",
    "trainer.log_every_n_steps",
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.strategy",
)
"""Options that say where things are, how they are shown or who computes, not what is trained."""
PROGRAM = ("python", "-m", "src.run")
RESULT = "result.json"
"""In a run's folder; that it is there says that the run is finished."""
_PLACES = ("hydra.searchpath=", "hydra.sweep.dir=", "hydra.sweep.subdir=")
_LONGEST = 180
"""Characters of a folder's name; file systems allow 255 bytes."""


def run_name(overrides: Sequence[str], task: str, method: str, seed: int) -> str:
    """E.g. `acl_arc_meta/auxiliary.size=10,seed=1` for the overrides of a command line.

    Args:
        overrides: the job's overrides, as Hydra lists them.
        task: used with `method` where no experiment is named.
        method: see `task`.
        seed: always part of the name.
    """
    named = f"{task}_{method}"
    parts: dict[str, str] = {}
    for override in overrides:
        key, _, value = override.lstrip("+~").partition("=")
        if key == "experiment":
            named = value
        elif not is_elsewhere(re.sub(r"[/@]", ".", key)) and key != "seed":
            parts[key] = value
    parts["seed"] = str(seed)
    exact = ",".join(f"{key}={parts[key]}" for key in sorted(parts))
    name = re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", exact)
    if len(name) > _LONGEST:
        digest = hashlib.sha256(exact.encode()).hexdigest()[:8]
        name = f"{name[: _LONGEST - 9]}-{digest}"
    return f"{re.sub(r'[^A-Za-z0-9._+-]+', '-', named)}/{name}"


def command_of(overrides: Sequence[str], hydra_overrides: Sequence[str] = ()) -> str:
    """Return the command that runs a job alone.

    Args:
        overrides: the job's.
        hydra_overrides: Hydra's own, of which only those count that say where configs and runs are.
    """
    found = [o for o in hydra_overrides if o.startswith(_PLACES)]
    return shlex.join([*PROGRAM, *overrides, *found])


def is_elsewhere(option: str) -> bool:
    """Return whether a dotted option is one of `ELSEWHERE`, or below one."""
    return any(option == name or option.startswith(f"{name}.") for name in ELSEWHERE)
