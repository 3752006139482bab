"""Checks an objective of somebody's own before anything is read or trained."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from tartan.errors import UserError

_METHODS = ("features", "targets", "owners", "losses", "new_head", "collate")
"""Methods of an objective (see `TaskObjective`)."""
_OPTIONS = ("training", "packed", "on_cpu")
"""Options of `collate`, which are passed by name."""


def is_objective(kind: type) -> bool:
    """Return whether a class is a dataclass with an objective's methods."""
    return dataclasses.is_dataclass(kind) and not _lacking(kind)


def check_objective(objective: Any, what: str) -> None:
    """Check that an object is a dataclass with an objective's methods.

    Args:
        objective: the object.
        what: what it is given for, for messages.

    Raises:
        UserError: it is a class instead of an instance, no dataclass, or lacks a method; or
            `collate` does not take the options that it is called with.
    """
    if isinstance(objective, type):
        raise UserError(f"{what}: {objective.__name__} is a class; give an instance of it")
    kind = type(objective).__name__
    lacking = _lacking(objective)
    if lacking:
        raise UserError(
            f"{what}: {kind} lacks {', '.join(f'{name}()' for name in lacking)}; an objective has "
            "all methods of TaskObjective (src/tartan/objectives/base.py)"
        )
    taken = inspect.signature(objective.collate).parameters
    if not dataclasses.is_dataclass(objective):
        raise UserError(
            f"{what}: {kind} is not a dataclass, whose fields go into checkpoints; decorate the "
            "class with @dataclass(frozen=True)"
        )
    is_open = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    lacking = [] if is_open else [name for name in _OPTIONS if name not in taken]
    if lacking:
        raise UserError(
            f"{what}: collate() of {kind} takes no {', '.join(lacking)}; its options are those of "
            "TaskObjective.collate (src/tartan/objectives/base.py)"
        )


def _lacking(objective: Any) -> list[str]:
    return [name for name in _METHODS if not callable(getattr(objective, name, None))]
