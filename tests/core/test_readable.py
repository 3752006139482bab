"""The core is read like a paper: short functions of few parameters, with nothing from outside."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT

CORE = ROOT / "src" / "tartan" / "core"
FILES = sorted(CORE.rglob("*.py"))
ALLOWED = ("tartan.core", "torch", "annotated_types", "numpy")  # numpy draws, in seeding
STDLIB = {"__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "functools",
          "hashlib", "importlib", "io", "math", "typing"}  # fmt: skip


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_files_and_functions_are_short_and_import_torch_alone(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
    for function in functions(path):
        args = function.args
        named = [a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
        assert function.end_lineno - function.lineno < 60, function.name
        assert len([name for name in named if name not in ("self", "cls")]) <= 6, function.name
    modules = {m for m in imported(path) if m.partition(".")[0] not in STDLIB}
    assert {m for m in modules if not m.startswith(ALLOWED)} == set()


def test_algorithm_1_fits_on_a_page():
    assert len(FILES) > 10
    (mix, _) = [f for f in functions(CORE / "weighting" / "meta.py") if f.name == "mix"]
    assert len(mix.body) - 1 <= 8  # statements, the docstring not counted
