"""The folder of a run, named by what differs: the same command, the same folder."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ELSEWHERE = ("data_dir", "cache_dir", "num_workers", "logger", "hydra", "run")
"""Options that say where things are or how they are shown, not what is trained."""


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
        elif key.split(".")[0].split("/")[0] not in _ELSEWHERE and key != "seed":
            parts[key] = value
    parts["seed"] = str(seed)
    return f"{_clean(named)}/" + ",".join(f"{_clean(k)}={_clean(parts[k])}" for k in sorted(parts))


def _clean(text: str) -> str:
    """Only characters that are safe in a file name; long values keep their end."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-")[-80:]
