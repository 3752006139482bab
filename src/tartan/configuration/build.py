"""Builds objects from Hydra's configuration; errors name the option in one line."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tartan.configuration.values import TARGET, validated
from tartan.errors import UserError, first_line

T = TypeVar("T")

_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")
"""Python's message of an argument that a function does not take."""
_NO_CLASS = re.compile(r"No module named '(.+)\.(\w+)'; '\1' is not a package")
"""Python's message of a name that a module lacks, which Hydra takes for a module too."""


def build(node: Any, option: str, **arguments: Any) -> Any:
    """Build the object that `node._target_` names, with `arguments` besides the node's own.

    Arguments of this project's own classes are checked against their declared types first.

    Args:
        node: the node of the config.
        option: the node's dotted name, for messages.
        arguments: further arguments.

    Raises:
        UserError: an argument is invalid, or the node names no class.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        if not isinstance(values, dict) or TARGET not in values:
            raise UserError(
                f"{option} names no class; its YAML file needs a line "
                "_target_: package.module.Class"
            )
        validated(values, Any, option)
        return hydra.utils.instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        cause, place = _root_cause(error), _place(error, option)
        if isinstance(cause, ImportError):
            lacks = _NO_CLASS.fullmatch(first_line(cause))
            said = f"{lacks[1]} has no class {lacks[2]}" if lacks else first_line(cause)
            raise UserError(f"{place} cannot be imported: {said}") from error
        unknown = _UNKNOWN.search(str(cause)) if isinstance(cause, TypeError) else None
        if unknown is not None and unknown[1] not in arguments:
            name = f"{place}.{unknown[1]}"
            raise UserError(
                f"there is no option {name} of {node.get(TARGET)}; leave it out (where a file sets "
                f"it: '~{name}')"
            ) from error
        raise UserError(f"{place}: {first_line(cause)}") from error
    except OmegaConfBaseException as error:
        raise UserError(f"{option}: {first_line(error)}") from error


def typed(node: DictConfig, schema: type[T], option: str = "") -> T:
    """Return the dataclass `schema` filled from `node`, each value checked by its type.

    Args:
        node: the node of the config.
        schema: the dataclass.
        option: the node's dotted name, for messages; empty for the whole config.

    Raises:
        UserError: an option is unknown, or a value invalid.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:
        place = ".".join(filter(None, [option, str(error.full_key or "")]))
        raise UserError(f"{place}: {first_line(error)}") from error
    filled = validated(values, schema, option)
    assert isinstance(filled, schema)
    return filled


def _place(error: InstantiationException, option: str) -> str:
    """Return the option that could not be built: `option`, or one below it."""
    key = re.search(r"^full_key: (.+)$", str(error), re.MULTILINE)
    if key is None or key[1] == option or key[1].startswith(f"{option}."):
        return key[1] if key else option
    return f"{option}.{key[1]}"  # of a node without the config that it is from


def _root_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None and not isinstance(error, UserError):
        error = error.__cause__
    return error
