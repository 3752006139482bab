"""Parts of a module as nodes, the form in which checkpoints hold them.

A node names a class in `_target_`, beside its arguments, as Hydra's configs do. Checkpoints are not
trusted: a node makes only an object of the kind that is expected where it stands, of a class of
this project, of torchmetrics' classification metrics, or of a module that the program has imported
itself. Arguments go to that class alone; nothing else that a node names is called.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tartan.errors import UserError
from tartan.settings import TARGET, check, hints_of

Node = Mapping[str, Any]
"""The name of a class in `_target_`, and its arguments."""
_IMPORTED = ("tartan.", "torchmetrics.classification.")  # what a node may import
_LIBRARIES = ("torchmetrics", "transformers", "torch", "lightning", "datasets", "hydra", "pydantic")
"""Packages whose other classes are never parts of a module, though the program imports them."""


def node_of(thing: object) -> dict[str, Any]:
    """Return the node of a dataclass's instance; of a class, perhaps in a `partial`; or a node."""
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, partial) and isinstance(thing.func, type) and not thing.args:
        return {**node_of(thing.func), **thing.keywords}
    if isinstance(thing, type):
        return {TARGET: f"{thing.__module__}.{thing.__qualname__}"}
    if not dataclasses.is_dataclass(thing):
        raise UserError(
            f"{thing!r} cannot be stored in a checkpoint; give its class, or "
            "functools.partial(CLASS, NAME=VALUE, ...)"
        )
    fields = [field.name for field in dataclasses.fields(thing) if field.init]
    values = {name: getattr(thing, name) for name in fields}
    nested = {n: node_of(v) for n, v in values.items() if dataclasses.is_dataclass(v)}
    return {**node_of(type(thing)), **values, **nested}


def rebuilt(node: Node, is_kind: Callable[[type], bool], **arguments: Any) -> Any:
    """Return the object that a node describes, of a class for which `is_kind`, with `arguments`.

    Nodes within it become dataclasses of this project or the node's own package, or based on these.
    """
    target = str(node.get(TARGET))
    kind = _class_of(target)
    if kind is None or not is_kind(kind):
        raise UserError(
            f"{target} is not a class that can stand here; if it is one of your own, import the "
            "module that defines it first"
        )
    packages = {"tartan", kind.__module__.partition(".")[0]}

    def is_field(nested: type) -> bool:
        bases = {base.__module__.partition(".")[0] for base in nested.__mro__}
        return dataclasses.is_dataclass(nested) and bool(packages & bases)

    hints = hints_of(kind) if target.startswith("tartan.") else {}
    values = {}
    for name, value in node.items():
        if isinstance(value, Mapping) and TARGET in value:
            values[name] = rebuilt(value, is_field)
        elif name != TARGET:
            values[name] = check(value, hints.get(name, Any), name)
    return kind(**values, **arguments)


def _class_of(target: str) -> type | None:
    folder, _, name = target.rpartition(".")
    module = None
    if target.startswith(_IMPORTED):
        module = importlib.import_module(folder)
    elif target.partition(".")[0] not in _LIBRARIES:
        module = sys.modules.get(folder)
    kind = getattr(module, name, None)
    return kind if isinstance(kind, type) else None


def check_storable(arguments: Mapping[str, Any]) -> None:
    """Check that a checkpoint can hold these values: numbers, strings, lists and dicts."""
    try:
        json.dumps(arguments)
    except TypeError as error:
        raise UserError(f"an argument cannot be stored in a checkpoint: {error}") from error
