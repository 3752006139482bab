"""Converts objects to plain values and back, for checkpoints with only tensors and these.

Checkpoints are not trusted: an entry names a class, which is only used if it is of the expected
kind, and belongs to this project, to torchmetrics' classification metrics, or to a module that the
program has already imported.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from src.configuration.values import TARGET
from src.errors import UserError

_IMPORTED = ("src.", "torchmetrics.classification.")
_ELSEWHERE = ("torchmetrics.", "transformers.", "torch.", "lightning.", "datasets.")
"""Libraries whose other classes are never parts of a module."""

Node = Mapping[str, Any]
"""The name of a class in `_target_`, and its arguments."""


def node_of(thing: object) -> dict[str, Any]:
    """Return a node from which `rebuilt` makes `thing` again.

    Args:
        thing: an instance of a dataclass; a class, with keyword arguments in a `partial` if it
            takes any; or a node. Fields that the constructor does not take are left out.

    Raises:
        UserError: it is something else.
    """
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, partial) and isinstance(thing.func, type) and not thing.args:
        return {TARGET: _name(thing.func), **thing.keywords}
    if isinstance(thing, type):
        return {TARGET: _name(thing)}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        given = [field.name for field in dataclasses.fields(thing) if field.init]
        values = {name: getattr(thing, name) for name in given}
        parts = {k: node_of(v) for k, v in values.items() if _is_part(type(v))}
        plain = dataclasses.asdict(thing)
        return {TARGET: _name(type(thing)), **{name: plain[name] for name in given}, **parts}
    raise UserError(
        f"{thing!r} cannot be stored in a checkpoint; give its class, or "
        "functools.partial(CLASS, NAME=VALUE, ...)"
    )


def rebuilt(node: Node, is_kind: Callable[[type], bool], what: str, **arguments: Any) -> Any:
    """Build the object that `node` describes, with `arguments` in addition to the node's own.

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
            f"{what}: {target} is no class that can stand here; import the module that defines it "
            f"first, or give it: {what}=..."
        )
    own = {k: v for k, v in node.items() if k != TARGET}
    own |= {
        k: rebuilt(v, _is_part, what)
        for k, v in own.items()
        if isinstance(v, Mapping) and TARGET in v and dataclasses.is_dataclass(found)
    }
    return found(**own, **arguments)


def subclass_of(kind: type) -> Callable[[type], bool]:
    """Return a function that returns whether a class is `kind` or a subclass of it."""
    return lambda found: issubclass(found, kind)


def has_members(*names: str) -> Callable[[type], bool]:
    """Return a function that returns whether a class is a dataclass with all of these methods."""
    return lambda found: (
        dataclasses.is_dataclass(found) and all(callable(getattr(found, n, None)) for n in names)
    )


def _is_part(kind: type) -> bool:
    """Return whether objects of a class may be parts of objectives."""
    return dataclasses.is_dataclass(kind) and kind.__module__.startswith("src.objectives.")


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
    if "<locals>" in kind.__qualname__:
        raise UserError(
            f"{kind.__name__} is defined in a function, where a checkpoint cannot name it; define "
            "it at module level"
        )
    return f"{kind.__module__}.{kind.__qualname__}"
