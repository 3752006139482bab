"""Declares the types of options, which say what values are allowed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AllowInfNan, StringConstraints

from tartan.configuration.did_you_mean import did_you_mean
from tartan.configuration.values import check, hints_of

P = ParamSpec("P")
R = TypeVar("R")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Natural = Annotated[int, Ge(0)]
Count = Annotated[int, Ge(1)]
Length = Annotated[int, Ge(8)]
"""Maximum length of an input: an encoder's special tokens and some others must fit [tokens]."""
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Temperature = Annotated[float, Gt(0), AllowInfNan(True)]
"""Temperature of a softmax; with `inf`, all are equal."""
Share = Annotated[float, Gt(0), Le(1)]
Part = Annotated[float, Gt(0), Lt(1)]
"""A share between 0 and 1, excluding both."""
Below1 = Annotated[float, Ge(0), Lt(1)]
Fraction = Annotated[float, Ge(0), Le(1)]
Size: TypeAlias = Positive | Literal["all"]
"""Size of an auxiliary task, in multiples of the end task's training examples, or `all`."""


class Checked:
    """Base of dataclasses that check their fields by the declared types.

    Raises:
        UserError: a field has an invalid value; the message names it.
    """

    def __post_init__(self) -> None:
        for name, hint in hints_of(type(self)).items():
            # fields of frozen dataclasses too
            object.__setattr__(self, name, check(getattr(self, name), hint, name))


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function, or `__init__`, check its arguments by their declared types.

    An invalid argument raises a `UserError` that names it, and an unknown or missing one a
    `TypeError` that names the function, as Python's own.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = hints_of(function)
        signature = inspect.signature(function)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = sorted(kwargs.keys() - signature.parameters.keys())
            near = did_you_mean(unknown[0], hints, listed=False) if unknown else ""
            raise TypeError(f"{_called(function, args)}(): {error}{near}") from None
        for name, value in given.arguments.items():
            given.arguments[name] = check(value, hints.get(name, Any), name)
        return function(*given.args, **given.kwargs)

    return call


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return a function's name as its caller knows it: with the class that inherits it."""
    first = next(iter(inspect.signature(function).parameters), "")
    if first not in ("cls", "self") or not args:
        return function.__qualname__.removesuffix(".__init__")
    kind = args[0] if first == "cls" else type(args[0])
    method = "" if function.__name__ == "__init__" else f".{function.__name__}"
    return f"{kind.__name__}{method}"
