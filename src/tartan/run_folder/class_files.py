"""Finds the files that define a class, by its dotted name, without importing anything."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = "__init__.py"
"""File with the module of a package."""


def files_of_class(target: str) -> Iterator[Path]:
    """Yield the file of a class' module, and of those that it imports the class from.

    No module is imported. Nothing is yielded where none is found.
    """
    seen: set[str] = set()
    while target not in seen:  # modules may import from each other
        seen.add(target)
        module, _, name = target.rpartition(".")
        path = _module_file(module)
        if path is None:
            return
        yield path
        package = module if path.name == _PACKAGE else module.rpartition(".")[0]
        target = _origin(name, path, package) or target


def _module_file(module: str) -> Path | None:
    """Return the file of a module or package; None where none is found."""
    if not module:
        return None
    name = Path(*module.split("."))
    found = (Path(root, one) for root in sys.path for one in (name / _PACKAGE, f"{name}.py"))
    return next((path for path in found if path.is_file()), None)


def _origin(name: str, path: Path, package: str) -> str | None:
    """Return the dotted name of what a module imports as `name`; None where it imports none.

    Args:
        name: the name in the module.
        path: the module's file.
        package: the package from which its relative imports start.
    """
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    for node in body:
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else ()), *([node.module] if node.module else ())]
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return ".".join([*parts, alias.name])
    return None
