"""What the docstrings say of a class's arguments, and of itself."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import Any

_SECTIONS = ("Args:", "Attributes:")
_ENTRY = re.compile(r"(\w+): (.*)")
_REFERENCE = re.compile(r"see `(\w+)`\.?")


def summary(target: type) -> str:
    """The first paragraph of a class's own docstring."""
    return " ".join((inspect.getdoc(target) or "").partition("\n\n")[0].split())


def arguments(target: type) -> dict[str, str]:
    """What a class and the classes it inherits from say of its arguments, by name.

    `see X` stands for what the class `X` of this project says.
    """
    found: dict[str, str] = {}
    for base in reversed(target.__mro__):
        found |= _entries(base.__doc__ or "")
    for name, text in found.items():
        reference = _REFERENCE.fullmatch(text)
        if reference:
            found[name] = arguments(_class_named(reference[1]))[name]
    return found


def parameters(target: type) -> dict[str, inspect.Parameter]:
    """The arguments of a class that an instance is built with, by name."""
    signature = inspect.signature(target).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {parameter.name: parameter for parameter in signature if parameter.kind in kinds}


def default_of(parameter: inspect.Parameter) -> Any:
    """A parameter's default, also where a dataclass makes it anew for each instance."""
    if parameter.default.__class__.__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return dataclasses.MISSING
    return parameter.default


def _entries(docstring: str) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = inspect.cleandoc(docstring).splitlines()
    inside, name = False, ""
    for line in lines:
        if line.strip() in _SECTIONS and not line.startswith(" "):
            inside, name = True, ""
        elif line and not line.startswith(" "):
            inside = False
        elif inside:
            entry = _ENTRY.fullmatch(line[4:])
            if entry and not line[4:].startswith(" "):
                name = entry[1]
                found[name] = entry[2].strip()
            elif name and line.strip():
                found[name] += " " + line.strip()
    return found


def _class_named(name: str) -> type:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("tartan."):
            candidate = getattr(module, name, None)
            if isinstance(candidate, type) and candidate.__module__ == module_name:
                return candidate
    raise LookupError(f"a docstring refers to the class {name}, which is in no module of tartan")
