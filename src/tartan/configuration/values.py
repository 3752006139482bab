"""Checks values against the declared types of classes' and functions' arguments."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from omegaconf import OmegaConf
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tartan.configuration.did_you_mean import did_you_mean
from tartan.configuration.unknown_option import UnknownOptionError
from tartan.configuration.words import alternatives, shown, words
from tartan.errors import UserError

TARGET = "_target_"
"""Key of a class's name in Hydra's configs."""
_OF_PROGRAM = ("task_names", "num_classes")
"""Arguments that the program fills in, which messages do not offer."""
_OF_HYDRA = ("_target_", "_partial_", "_recursive_", "_convert_", "_args_")
PLAIN = (int, float, bool, str, type(None))
"""Types of single values in configurations and checkpoints."""
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_adapter = functools.cache(functools.partial(TypeAdapter, config=_STRICT))
_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


def check(value: Any, hint: Any, option: str) -> Any:
    """Return a value after checking it against a declared type, if that consists of plain types.

    NumPy's numbers become Python's, as do OmegaConf's lists and mappings.

    Raises:
        UserError: it does not fit; the message names `option`, what is allowed, and the value.
    """
    if not _is_plain(hint):
        return value
    value = without_numpy(value)
    validated(value, hint, option)
    return value


def without_numpy(value: Any) -> Any:
    """Return a value with NumPy's numbers in it as Python's, and OmegaConf's lists and mappings.

    A checkpoint can hold these.
    """
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=True)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    if type(value) is dict:
        return {key: without_numpy(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(without_numpy(one) for one in value)
    return value


def validated(value: Any, hint: Any, option: str) -> Any:
    """Return `value` as `hint` declares it, after checking everything in it at any depth.

    A mapping becomes the dataclass that `hint` is. A mapping that names a class stays one; its
    arguments for a class of this project are checked against the types that the class declares.

    Args:
        value: the value.
        hint: the declared type.
        option: the value's dotted name in messages; may be empty.

    Raises:
        UnknownOptionError: an option is unknown.
        UserError: a value has the wrong type or is out of range.
    """
    if get_origin(hint) in (Union, types.UnionType) and not _is_plain(hint):
        hint = Any  # its class checks it itself
    if isinstance(value, Mapping) and TARGET in value:
        return _arguments(value, hint, option)
    if isinstance(value, Mapping) and isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _filled(value, hint, option)
    if isinstance(value, Mapping) and (hint is Any or get_origin(hint) in (Mapping, dict)):
        inner = Any if hint is Any else get_args(hint)[1]
        return {key: validated(one, inner, _within(option, key)) for key, one in value.items()}
    if isinstance(value, list) and not _is_plain(hint):
        inner = get_args(hint)[0] if get_origin(hint) in (Sequence, list) else Any
        return [validated(one, inner, f"{option}[{at}]") for at, one in enumerate(value)]
    if not _is_plain(hint):
        if hint is not Any and isinstance(get_origin(hint) or hint, type):
            raise UserError(f"{option} must be {words(hint)}, got {shown(value)}")
        return value
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError:
        near = _one_file(value) if isinstance(value, list) else ""
        if isinstance(value, str):
            near = did_you_mean(value, alternatives(hint), listed=False)
        raise UserError(f"{option} must be {words(hint)}, got {shown(value)}{near}") from None


def _one_file(value: Sequence[Any]) -> str:
    """Return advice where a list, which an option does not take, seems to be one of files."""
    if not value or not all(isinstance(one, str) and PurePath(one).suffix for one in value):
        return ""
    return "; it takes one file: join them into one first"


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the declared types of the arguments of a class or function."""
    declares: Any = kind
    if dataclasses.is_dataclass(kind):
        hints = _hints(declares)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    if isinstance(kind, type):
        declares = inspect.getattr_static(kind, "__init__")
    return _hints(declares)


def _arguments(node: Mapping[str, Any], hint: Any, option: str) -> dict[str, Any]:
    """Return a node that names a class, after checking its arguments.

    For a class of another library, only the types that `hint` declares are known. Arguments may be
    missing, or `???`: the program may add some, and building the class reports those that are
    missing.
    """
    found = _class_of(node[TARGET])
    parameters = {} if found is None else inspect.signature(found).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    is_open = found is None or inspect.Parameter.VAR_KEYWORD in kinds
    declares = hint if found is None and dataclasses.is_dataclass(hint) else found
    hints = {} if declares is None else hints_of(declares)
    given = {k: v for k, v in node.items() if k not in _OF_HYDRA and v != "???"}
    return {**node, **_checked(given, hints, option, None if is_open else parameters)}


def _filled(values: Mapping[str, Any], kind: type, option: str) -> Any:
    hints = hints_of(kind)
    filled = _checked({k: v for k, v in values.items() if v != "???"}, hints, option, hints)
    for name, parameter in inspect.signature(kind).parameters.items():
        if name not in filled and (parameter.default is parameter.empty or name in values):
            where = _within(option, name)
            raise UserError(f"{where} is missing; it must be {words(hints[name])}")
    try:
        return kind(**filled)
    except UserError as error:
        raise UserError(f"{option}: {error}" if option else str(error)) from error


def _checked(
    values: Mapping[str, Any], hints: Mapping[str, Any], option: str, known: Iterable[str] | None
) -> dict[str, Any]:
    """Return the values of `option`, checked.

    Args:
        values: the values by name.
        hints: declared types by name.
        option: the dotted name in messages.
        known: names of all options; None allows any. Other values, for interpolations to refer to,
            are allowed unless their names resemble an option's.

    Raises:
        UserError: an option is unknown, or a value invalid.
    """
    checked = {}
    for key, value in values.items():
        if known is None or key in known:
            checked[key] = validated(value, hints.get(key, Any), _within(option, key))
            continue
        offered = [name for name in known if name not in _OF_PROGRAM]
        near = did_you_mean(str(key), offered, _within(option, ""), listed=bool(option))
        if option or near:
            raise UnknownOptionError(_within(option, key), near)
    return checked


def _within(option: str, name: object) -> str:
    return f"{option}.{name}" if option else str(name)


def _class_of(target: object) -> type | None:
    """Return the class of this project with that name; None for others, or if there is none."""
    if not isinstance(target, str) or not target.startswith("tartan."):
        return None
    folder, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(folder), name, None)
    except ImportError:
        return None  # instantiation says what is wrong with the name
    return found if isinstance(found, type) else None


def _is_plain(hint: Any) -> bool:
    """Return whether a declared type consists of numbers, strings and the like."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _is_plain(inner[0])
    if origin in (Union, types.UnionType, Sequence, Mapping, list, dict):
        return all(_is_plain(member) for member in inner)
    return hint in PLAIN
