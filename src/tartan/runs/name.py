"""Names a run's folder by its overrides, so that the same command has the same folder."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

from omegaconf import OmegaConf

from tartan.runs.command_line import program

NOT_OF_TRAINING = (
    "data_dir", "cache_dir", "paths", "num_workers", "logger", "hydra", "run", "resume", "verbose",
    "checkpoint_minutes", "trainer.enable_progress_bar", "trainer.log_every_n_steps",
    "trainer.devices", "trainer.num_nodes", "trainer.strategy",
)  # fmt: skip
"""Options about places, display or machines, which do not change what is trained."""
RESULT = "result.json"
"""File in a run folder whose presence says that the run is finished."""
_PLACES = ("hydra.searchpath=", "hydra.sweep.dir=", "hydra.sweep.subdir=")
_LONGEST = 40
"""Maximum length of a name that lists all options; longer ones end in a digest [characters]."""
_WORDS = 30
"""Maximum length of the options' values in a name with a digest [characters]."""


def as_given(overrides: Sequence[str]) -> list[str]:
    """Return Hydra's overrides as they were given, with interpolations that are not resolved."""
    if OmegaConf.is_config(overrides):
        overrides = cast(list[str], OmegaConf.to_container(overrides, resolve=False))
    return list(overrides)


def run_name(overrides: Sequence[str], task: str, method: str, seed: int) -> str:
    """Return the folder of a command line's run, relative to the folder of all runs.

    E.g. `acl_arc_meta/auxiliary.size=10,seed=1`; where that would be long, the options' values and
    a digest of all options: `custom/labels-texts-minilm-seed0-3f2a9c`. Where the overrides name no
    experiment, `task` and `method` do.
    """
    experiment = f"{task}_{method}"
    options: dict[str, str] = {}
    for override in as_given(overrides):
        key, _, value = override.lstrip("+~").partition("=")
        if key == "experiment":
            experiment = value
        elif not changes_no_training(option_of(override)) and key != "seed":
            options[key] = value
    options["seed"] = str(seed)
    exact = ",".join(f"{key}={options[key]}" for key in sorted(options))
    name = re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", exact)
    above = re.sub(r"[^A-Za-z0-9._+-]+", "-", experiment)
    if len(name) <= _LONGEST:
        return f"{above}/{name}"
    digest = hashlib.sha256(exact.encode()).hexdigest()[:6]
    return f"{above}/{_words(options)}-seed{seed}-{digest}"


def _words(options: Mapping[str, str]) -> str:
    """Return the options' values, the task's first; of paths the last part, without its ending."""
    keys = sorted(options.keys() - {"seed"}, key=lambda key: (not key.startswith("task"), key))
    paths = [PurePath(options[key].strip("'\"")) for key in keys]
    values = [
        (path.name if path.suffix[1:2].isdigit() else path.stem) or key  # a decimal point stays
        for key, path in zip(keys, paths, strict=True)
    ]
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.") for value in values]
    return "-".join(word for word in words if word)[:_WORDS].strip("-.")


def command_of(overrides: Sequence[str], places: Sequence[str] = ()) -> str:
    """Return the command that runs a job alone, with what `places_of` returns."""
    return shlex.join([*program(), *arguments_of(overrides, places)])


def arguments_of(overrides: Sequence[str], places: Sequence[str] = ()) -> list[str]:
    """Return the arguments of the command that runs a job alone; flags come first."""
    flags = [place for place in places if place.startswith("--")]
    return [*flags, *as_given(overrides), *(place for place in places if place not in flags)]


def places_of(hydra: Any) -> list[str]:
    """Return what a command says about the places of configs and runs: a flag, and overrides.

    Args:
        hydra: Hydra's own settings, as a config or as read from a file, of any content.
    """
    if OmegaConf.is_config(hydra):
        hydra = OmegaConf.to_container(hydra, resolve=False)
    folders = [
        f"--config-dir={source['path']}"
        for source in _list_in(hydra, "runtime", "config_sources")
        if isinstance(source, dict) and source.get("provider") == "command-line"
        if isinstance(source.get("path"), str)
    ]
    overrides = [o for o in _list_in(hydra, "overrides", "hydra") if isinstance(o, str)]
    return folders[:1] + [o for o in overrides if o.startswith(_PLACES)]


def _list_in(node: Any, *names: str) -> list[Any]:
    for name in names:
        node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, list) else []


def option_of(override: str) -> str:
    """Return the dotted name of the option that an override sets."""
    return re.sub(r"[/@]", ".", override.lstrip("+~").partition("=")[0])


def changes_no_training(option: str) -> bool:
    """Return whether a dotted option has no effect on the training: one of `NOT_OF_TRAINING`."""
    return any(option == name or option.startswith(f"{name}.") for name in NOT_OF_TRAINING)
