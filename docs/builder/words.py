"""Writes declared types and given values in words, for messages and the reference of options."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_WORDS = {int: "a whole number", float: "a finite number", str: "text", type(None): "null"}


def shown(value: object) -> str:
    """Return a value as it is written on a command line or in a config file."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def words(hint: Any) -> str:
    """Return what a declared type allows, e.g. `a whole number of at least 1 or null`."""
    *others, last = alternatives(hint)
    return f"{', '.join(others)} or {last}" if others else last


def alternatives(hint: Any) -> list[str]:
    """Return the values and kinds of values that a declared type allows."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is bool:
        return ["true", "false"]
    if origin in (Union, types.UnionType):
        return [words for member in inner for words in alternatives(member)]
    if origin is Literal:
        return [str(choice) for choice in inner]
    if origin is Annotated:
        return [_bounded(inner[0], inner[1:])]
    if origin in (list, tuple, Sequence):
        return [f"a list of {_plural(words(inner[0]))}"]
    if dataclasses.is_dataclass(hint) or hint == Mapping[str, Any]:
        return ["a mapping of options"]
    if origin in (dict, Mapping):
        return [f"a mapping of names to {_plural(words(inner[1]))}"]
    kind = origin or hint
    return [_WORDS.get(hint, f"an object ({getattr(kind, '__name__', kind)})")]


def _bounded(kind: Any, bounds: Sequence[Any]) -> str:
    """Return a number's type with its bounds, e.g. `a number in [0, 1)`."""
    given = {name: value for bound in bounds for name, value in dataclasses.asdict(bound).items()}
    low, high = given.get("ge", given.get("gt")), given.get("le", given.get("lt"))
    said = "non-empty text" if kind is str else words(kind)
    if "allow_inf_nan" in given or high is not None:
        said = said.replace("finite ", "")
    if high is not None and kind is int:
        said += f" from {low} to {high}"
    elif high is not None:
        said += f" in {'(['['ge' in given]}{low}, {high}{')]'['le' in given]}"
    elif low is not None:
        said += f" of at least {low}" if "ge" in given else f" above {low}"
    return f"{said}, a multiple of {given['multiple_of']}" if "multiple_of" in given else said


def _plural(said: str) -> str:
    said = re.sub(r"^a (whole |finite )?number", r"\1numbers", said)
    return re.sub(r"^(?:a )?(.*text|mapping)\b", r"\1s", said)
