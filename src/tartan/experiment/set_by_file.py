"""Explains an option that does not exist, and that a file sets instead of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from tartan.configuration.unknown_option import UnknownOptionError
from tartan.run_folder.name import as_given, option_of


def explained(error: UnknownOptionError) -> str:
    """Return the error's message; with how to drop the option, where nobody has typed it.

    E.g. an experiment sets `weighting.eta`, and the command line chooses a weighting without it.
    """
    if not HydraConfig.initialized():
        return str(error)
    hydra, option = HydraConfig.get(), error.option
    if _is_typed(option, as_given(hydra.overrides.task)):
        return str(error)
    name = hydra.runtime.choices.get("experiment")
    named = name and _sets(option, f"experiment/{name}.yaml", hydra.runtime.config_sources)
    said = f"there is no option {option}, which a file sets"
    said += f" (experiment={name})" if named else ""
    if error.instead.startswith("; did you mean"):
        return f"{said}{error.instead}"
    group = _group_of(option, hydra.runtime.choices)
    said += f", with {group}={hydra.runtime.choices[group]}" if group else ""
    return f"{said}{error.instead}; take it out of the file, or add '~{option}'"


def _is_typed(option: str, overrides: Sequence[str]) -> bool:
    """Return whether an override sets the option, a part of it, or a mapping around it."""
    for override in overrides:
        given, value = option_of(override), override.partition("=")[2]
        in_mapping = option.startswith(f"{given}.") and value.startswith("{")
        if given == option or given.startswith(f"{option}.") or in_mapping:
            return True
    return False


def _sets(option: str, file: str, sources: Sequence[Any]) -> bool:
    """Return whether a file, which lies in one of Hydra's folders of configs, sets the option."""
    folders = (Path(source.path) for source in sources if source.schema == "file")
    path = next((path for folder in folders if (path := folder / file).is_file()), None)
    node: Any = None if path is None else OmegaConf.to_container(OmegaConf.load(path))
    for key in option.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


def _group_of(option: str, choices: Mapping[str, Any]) -> str | None:
    """Return the group whose choice the option is part of; None if there is none."""
    places = {str(group): str(group).rpartition("@")[2].replace("/", ".") for group in choices}
    around = [group for group, place in places.items() if option.startswith(f"{place}.")]
    return max(around, key=lambda group: len(places[group]), default=None)
