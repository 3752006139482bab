"""From Hydra's configuration to objects, with errors of one line that name the option."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from src.configuration.checks import shown
from src.errors import UserError

T = TypeVar("T")

_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "null",
}
"""Words for a value of a declared type, for messages."""


class _WrongTypeError(UserError):
    """A value that is not of its declared type; the message holds the whole name of the option."""


def build(node: Any, option: str, **arguments: Any) -> Any:
    """Instantiate what `node._target_` names, with `arguments` besides the node's own.

    The arguments of this project's own classes are checked against their declared types first.

    Raises:
        UserError: the arguments do not fit, or the target says so itself.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        _check_types(values, option)
        return hydra.utils.instantiate(node, _convert_="all", **arguments)
    except InstantiationException as error:
        cause = _root_cause(error)
        if isinstance(cause, UserError):
            raise UserError(str(cause)) from error
        if isinstance(cause, ImportError):
            raise UserError(f"{option} cannot be imported: {_first_line(cause)}") from error
        raise UserError(f"{option}: {_first_line(cause)}") from error
    except OmegaConfBaseException as error:
        raise UserError(f"{option}: {_first_line(error)}") from error


def typed(node: DictConfig, schema: type[T], option: str) -> T:
    """The dataclass `schema` filled from `node`, every value checked against its declared type.

    Raises:
        UserError: an unknown option, or a value of the wrong type.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
        _check_fields(values, schema, option)
        merged = OmegaConf.merge(OmegaConf.structured(schema), values)
        filled = OmegaConf.to_object(merged)
    except _WrongTypeError:
        raise
    except UserError as error:  # from a dataclass's own checks, which know their field only
        raise UserError(f"{option}.{error}") from error
    except OmegaConfBaseException as error:
        key = f"{option}.{error.full_key}" if error.full_key else option
        raise UserError(f"{key}: {_first_line(error)}") from error
    assert isinstance(filled, schema)
    return filled


def _check_types(values: object, option: str) -> None:
    """Check the plain values that a node gives to a class of this project, at any depth.

    Raises:
        UserError: one is not of its declared type, or not a number (NaN).
    """
    if isinstance(values, list):
        for index, value in enumerate(values):
            _check_types(value, f"{option}[{index}]")
    if not isinstance(values, dict):
        return
    hints = _declared_types(values.get("_target_"))
    for key, value in values.items():
        _check_types(value, f"{option}.{key}")
        if key in hints and value != "???":
            _check_type(value, hints[key], f"{option}.{key}")


def _check_fields(values: object, schema: type, option: str) -> None:
    """`_check_types` for what is to fill a dataclass, and the dataclasses in it."""
    if not isinstance(values, dict):
        return
    for key, hint in get_type_hints(schema).items():
        if key in values and dataclasses.is_dataclass(hint):
            _check_fields(values[key], hint, f"{option}.{key}")  # type: ignore[arg-type]
        elif key in values:
            _check_type(values[key], hint, f"{option}.{key}")


def _declared_types(target: object) -> Mapping[str, Any]:
    """Declared types of a class's arguments; empty for what is not ours, or cannot be found."""
    if not isinstance(target, str) or not target.startswith("src."):
        return {}
    try:
        found: Any = hydra.utils.get_class(target)
    except (ImportError, AttributeError, ValueError):
        return {}  # instantiation says what is wrong with the name
    return get_type_hints(found if dataclasses.is_dataclass(found) else found.__init__)


def _check_type(value: object, hint: Any, option: str) -> None:
    if get_origin(hint) is Mapping:
        if not isinstance(value, dict):
            raise _WrongTypeError(
                f"{option} must be a mapping, {{NAME: VALUE, ...}}, got {shown(value)}"
            )
        for name, entry in value.items():
            _check_type(entry, get_args(hint)[1], f"{option}.{name}")
        return
    union = get_origin(hint) in (Union, types.UnionType)
    members = get_args(hint) if union else (hint,)
    if not set(members) <= _KINDS.keys() or {float, str} <= set(members):
        return  # the class checks it itself
    if not any(_is_of(value, member) for member in members):
        kinds = " or ".join(_KINDS[member] for member in members)
        raise _WrongTypeError(f"{option} must be {kinds}, got {shown(value)}")


def _is_of(value: object, kind: type) -> bool:
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and not math.isnan(value)  # type: ignore[arg-type]
    return type(value) is kind


def _root_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
