"""Converts objects to plain values and back, for checkpoints with only tensors and these.

Checkpoints are not trusted: an entry names a class, which is only used if it is of the expected
kind, and belongs to this project, to torchmetrics' classification metrics, or to a module that the
program has already imported.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from tartan.errors import UserError
from tartan.settings import PLAIN, TARGET, hints_of, without_numpy

_IMPORTED = ("tartan.", "torchmetrics.classification.")
_ELSEWHERE = ("torchmetrics.", "transformers.", "torch.", "lightning.", "datasets.")
"""Libraries whose other classes are never parts of a module."""

S = TypeVar("S")
Node = Mapping[str, Any]
"""The name of a class in `_target_`, and its arguments."""


def node_of(thing: object) -> dict[str, Any]:
    """Return a node from which `rebuilt` makes `thing` again.

    Args:
        thing: an instance of a dataclass; a class, with keyword arguments in a `partial` if it
            takes any; or a node. Fields that the constructor does not take are left out.

    Raises:
        UserError: it is something else; or a field or argument is neither a plain value nor, in a
            dataclass, another dataclass.
    """
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, partial) and isinstance(thing.func, type) and not thing.args:
        kind = thing.func
        for name, value in thing.keywords.items():
            _check_plain(value, f"argument `{name}` of {kind.__name__}")
        return {TARGET: _name(kind), **thing.keywords}
    if isinstance(thing, type):
        return {TARGET: _name(thing)}
    if dataclasses.is_dataclass(thing):
        given = [field.name for field in dataclasses.fields(thing) if field.init]
        values = {name: _stored(thing, name) for name in given}
        return {TARGET: _name(type(thing)), **values}
    if isinstance(thing, str):
        raise UserError(
            f"{thing!r} is a name; give the class, as the files of conf/ name it, for instance "
            "tartan.core.weighting.fixed.Uniform"
        )
    raise UserError(
        f"{thing!r} cannot be stored in a checkpoint; give its class, or "
        "functools.partial(CLASS, NAME=VALUE, ...)"
    )


def _stored(thing: object, name: str) -> Any:
    """Return the value of a field as a checkpoint holds it."""
    value = getattr(thing, name)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return node_of(value)
    _check_plain(value, f"field `{name}` of {type(thing).__name__}")
    return copy.deepcopy(value)


def _check_plain(value: object, what: str) -> None:
    """Check that a checkpoint can hold a value, and gives it back as it was.

    Raises:
        UserError: it cannot.
    """
    if type(value) is dict:
        for entry in (*value, *value.values()):
            _check_plain(entry, what)
    elif type(value) in (list, tuple):
        for entry in value:  # type: ignore[attr-defined]
            _check_plain(entry, what)
    elif type(without_numpy(value)) not in PLAIN:
        raise UserError(
            f"{what} holds a {type(value).__name__}; a checkpoint holds numbers, strings, lists "
            "and dicts, and a dataclass that is a field by itself"
        )


def rebuilt(node: Node, is_kind: Callable[[type], bool], what: str, **arguments: Any) -> Any:
    """Build the object that `node` describes, with `arguments` in addition to the node's own.

    A field of a dataclass may be another one, of the class that the field is declared with or a
    subclass.

    Args:
        node: the node.
        is_kind: returns whether a class is of the expected kind.
        what: the argument of `load_from_checkpoint` that replaces the stored one, for messages.
        arguments: further arguments of the class.

    Raises:
        UserError: the node names no class, or one that is not of the expected kind.
    """
    target = str(node.get(TARGET))
    found = _class(target)
    if found is None or not is_kind(found):
        raise UserError(
            f"{what}: {target} is not a class that can stand here; import the module that defines "
            f"it first, or give it: {what}=..."
        )
    own = {k: v for k, v in node.items() if k != TARGET}
    if dataclasses.is_dataclass(found):
        own = {name: _value(found, name, value, what) for name, value in own.items()}
    return found(**own, **arguments)


def _value(kind: type, name: str, stored: Any, what: str) -> Any:
    """Return the value of a field of class `kind`, of what a checkpoint holds.

    Raises:
        UserError: it is an object of a class that does not stand there.
    """
    if not (isinstance(stored, Mapping) and TARGET in stored):
        return stored
    target = str(stored[TARGET])
    found = _class(target)
    if found is None or not dataclasses.is_dataclass(found) or not _fits(found, kind, name):
        raise UserError(
            f"{what}: {target} is not a class that can stand in field `{name}` of {kind.__name__}; "
            "import the module that defines it first, and declare the field as one of its "
            "base classes, or as itself"
        )
    return rebuilt(stored, lambda _: True, what)


def subclass_of(kind: type) -> Callable[[type], bool]:
    """Return a function that returns whether a class is `kind` or a subclass of it."""
    return lambda found: issubclass(found, kind)


def _fits(found: type, kind: type, name: str) -> bool:
    """Return whether field `name` of `kind` is declared as `found` or a base class of it."""
    try:
        hint = hints_of(kind).get(name)
    except NameError:  # of a name that is imported for type checkers only
        return False
    declared = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(
        isinstance(one, type) and one is not object and issubclass(found, one) for one in declared
    )


def _class(target: str) -> type | None:
    folder, _, name = target.rpartition(".")
    try:
        if target.startswith(_IMPORTED):
            module = importlib.import_module(folder)
        elif target.startswith(_ELSEWHERE):
            return None
        else:
            module = sys.modules[folder]
    except (ImportError, KeyError, ValueError):
        return None
    found = getattr(module, name, None)
    return found if isinstance(found, type) else None


def _name(kind: type) -> str:
    if "." in kind.__qualname__:
        place = "function" if "<locals>" in kind.__qualname__ else "class"
        raise UserError(
            f"{kind.__name__} is defined in a {place}, where a checkpoint cannot name it; define "
            "it at module level"
        )
    return f"{kind.__module__}.{kind.__qualname__}"


def settings_of(kind: type[S], given: S | Mapping[str, Any] | None) -> S:
    """Return settings of type `kind`, the usual ones where none were given."""
    return kind(**given) if isinstance(given, Mapping) else given or kind()
