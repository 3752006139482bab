"""Imports run one way: the order of packages that CONTRIBUTING.md shows, without an exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.programs import ROOT

FACE = ("tartan", "tartan.__main__")
"""The public names, and the command that calls all others."""


def order_in(page: str) -> list[str]:
    """The packages below `tartan` in the order in which CONTRIBUTING.md lists them."""
    _, _, section = page.partition("\n## The code\n")
    diagram = section.split("```")[1]
    lines = [line for line in diagram.splitlines() if line.startswith("src/tartan/")]
    return [line.split()[0].removeprefix("src/tartan/").removesuffix(".py") for line in lines]


def imports_of(source: str) -> Iterator[str]:
    """Modules of this project that `source` imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("tartan."))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            if node.module == "tartan":
                yield from (f"tartan.{alias.name}" for alias in node.names)
            elif node.module is not None and node.module.startswith("tartan."):
                yield node.module


def graph_of(folder: Path) -> dict[str, set[str]]:
    """What each module below `folder`, which stands for `tartan`, imports of the project."""
    return {
        _name(path.relative_to(folder)): set(imports_of(path.read_text(encoding="utf-8")))
        for path in sorted(folder.rglob("*.py"))
    }


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(("tartan", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def package_of(module: str) -> str:
    return module.split(".")[1]


def climbing(graph: dict[str, set[str]], order: list[str]) -> list[str]:
    """Imports of a package by one that comes before it in `order`."""
    return [
        f"{module} imports {imported}"
        for module, others in sorted(graph.items())
        for imported in sorted(others)
        if module not in FACE
        and order.index(package_of(imported)) > order.index(package_of(module))
    ]


GRAPH = graph_of(ROOT / "src" / "tartan")
ORDER = order_in((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_every_package_is_named_once():
    packages = {package_of(module) for module in GRAPH if module not in FACE}
    assert sorted(ORDER) == sorted(packages)


def test_no_import_runs_back_up():
    assert climbing(GRAPH, ORDER) == []
