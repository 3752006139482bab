"""Option types, and objects built from Hydra's configuration with each value checked strictly."""

import dataclasses
import functools
import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from tartan.errors import UserError, first_line

P = ParamSpec("P")
R = TypeVar("R")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Natural = Annotated[int, Ge(0)]
Count = Annotated[int, Ge(1)]
Length = Annotated[int, Ge(8)]
"""Maximum length of an input: an encoder's special tokens and some others must fit [tokens]."""
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Gt(0), Le(1)]
Part = Annotated[float, Gt(0), Lt(1)]
"""A share between 0 and 1, excluding both."""
Below1 = Annotated[float, Ge(0), Lt(1)]
Fraction = Annotated[float, Ge(0), Le(1)]
Size: TypeAlias = Positive | Literal["all"]
"""Size of an auxiliary task, in multiples of the end task's training examples, or `all`."""

CONF = str(Path(__file__).parent.resolve() / "conf")
"""The folder of the shipped configs, which Hydra searches first."""
TARGET = "_target_"
"""Key of a class's name in Hydra's configs."""
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
"""Nothing is converted, and unknown entries are refused."""
_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


@functools.cache
def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    """Return a validator of a type; None where pydantic does not know it, as for a tensor."""
    if dataclasses.is_dataclass(hint):
        return None  # checks itself
    try:
        return TypeAdapter(hint, config=STRICT)
    except PydanticSchemaGenerationError:
        return None


def check(value: Any, hint: Any, option: str) -> Any:
    """Return a value, NumPy's numbers as Python's, after checking it against a declared type."""
    adapter = _adapter(hint)
    if adapter is None:
        return value
    if type(value).__module__ == "numpy" and value.ndim == 0:
        value = value.item()
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        raise UserError(_message(error, value, option)) from None
    return value


class Checked:
    """Base of dataclasses that check their fields by the declared types (`UserError`)."""

    __pydantic_config__ = STRICT

    def __post_init__(self) -> None:
        for name, hint in hints_of(type(self)).items():
            # fields of frozen dataclasses too
            object.__setattr__(self, name, check(getattr(self, name), hint, name))


Schema = TypeVar("Schema", bound=Checked)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function, or `__init__`, check its arguments by their declared types (`UserError`)."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound, hints = signature.bind(*args, **kwargs), hints_of(function)
        for name, value in bound.arguments.items():
            bound.arguments[name] = check(value, hints.get(name, Any), name)
        return function(*bound.args, **bound.kwargs)

    return call


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the declared types of the arguments of a class or function."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _hints(inspect.getattr_static(kind, "__init__") if isinstance(kind, type) else kind)


def typed(node: Any, schema: type[Schema], option: str = "") -> Schema:
    """Return the dataclass `schema` filled from a config node, each value checked by its type.

    `option` is the node's dotted name, for messages; empty for the whole config, which may have
    further entries that others refer to.
    """
    values = _resolved(node, option)
    if not option:
        values = {key: values[key] for key in hints_of(schema) if key in values}
    try:
        # strict JSON takes a mapping for a dataclass, which a strict value of Python's has to be
        return TypeAdapter(schema).validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise UserError(_message(error, values, option)) from error
    except UserError as error:
        raise UserError(f"{option}: {error}" if option else str(error)) from error


def build(node: Any, option: str, **arguments: Any) -> Any:
    """Build the object that `node._target_` names, with `arguments` besides the node's own.

    Arguments of this project's own classes are checked against their declared types first;
    `option` is the node's dotted name, for messages.
    """
    import hydra
    from omegaconf.errors import OmegaConfBaseException

    if TARGET not in check_node(node, option):
        raise UserError(f"{option} names no class: its file needs a line {TARGET}: package.Class")
    try:
        return hydra.utils.instantiate(node, _convert_="all", **arguments)
    except (hydra.errors.InstantiationException, OmegaConfBaseException) as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, UserError):
            cause = cause.__cause__
        key = re.search(r"^full_key: (.+)$", str(error), re.MULTILINE)
        raise UserError(f"{key[1] if key else option}: {first_line(cause)}") from error


def check_node(node: Any, option: str) -> Any:
    """Return a node's values after checking those that are arguments of this project's classes."""
    values = _resolved(node, option)
    if not isinstance(values, dict | list):
        raise UserError(f"{option} is no mapping of options, got {values!r}")
    hints: Mapping[Any, Any] = {}
    if isinstance(values, dict) and str(values.get(TARGET, "")).startswith("tartan."):
        module, _, name = str(values[TARGET]).rpartition(".")
        try:
            hints = hints_of(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError):
            return values  # which building it reports
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        is_node = isinstance(value, dict | list)
        if key in hints and not (is_node and TARGET in str(value)):
            check(value, hints[key], f"{option}.{key}")
        if is_node:
            check_node(value, f"{option}.{key}")
    return values


def differing(stored: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the sorted names whose values differ, or that only one of the two has."""
    names = sorted(stored.keys() | new.keys())
    return [name for name in names if stored.get(name) != new.get(name)]


def quoted(value: str | Path) -> str:
    """Return a text as a value of Hydra's command line, quoted unless it is a simple path."""
    from hydra.core.override_parser.types import Quote, QuotedString

    if isinstance(value, Path) and re.fullmatch(r"[\w./-]*/[\w./-]*", str(value), re.ASCII):
        return str(value)
    # backslashes before a reference count
    escaped = re.sub(r"(\\*)(\$\{)", lambda m: m[1] * 2 + "\\" + m[2], str(value))
    return QuotedString(escaped, Quote.single).with_quotes()


def _resolved(node: Any, option: str) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not OmegaConf.is_config(node):
        return node
    try:
        return OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{error.full_key or option}: {first_line(error)}") from error


def _message(error: ValidationError, value: Any, option: str) -> str:
    """Return in one line what is wrong with the first invalid value, and its dotted name."""
    errors = error.errors(include_url=False, include_context=False)
    location, depth = errors[0]["loc"], 0
    missing = errors[0]["type"].startswith("missing")
    for key in location[:-1] if missing else location:
        try:
            value = value[key]
        except (TypeError, LookupError):  # the name of a member of a union
            break
        depth += 1
    place = ".".join(filter(None, [option, *map(str, location[: depth + missing])]))
    allowed = (one["msg"] for one in errors if one["loc"][:depth] == location[:depth])
    start = f"{place}: " if place else ""
    return start + " or ".join(dict.fromkeys(allowed)) + ("" if missing else f", got {value!r}")
