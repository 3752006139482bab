"""The core is read like a paper: short functions of few parameters, with nothing from outside."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT

LONGEST, MOST_PARAMETERS = 60, 6
FILES = sorted((ROOT / "src" / "tartan" / "core").rglob("*.py"))
OUTSIDE = ("tartan.", "transformers", "datasets", "lightning", "PIL", "torchvision")


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def parameters(function):
    """Names of a function's parameters, but for the object whose method it is."""
    args = function.args
    named = [a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    return [name for name in named if name not in ("self", "cls")]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_there_is_a_core():
    assert sum(len(functions(path)) for path in FILES) > 100


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: str(path.relative_to(ROOT / "src" / "tartan"))
)
def test_functions_are_short_and_have_few_parameters(path):
    for function in functions(path):
        lines = function.end_lineno - function.lineno + 1
        assert lines <= LONGEST, f"{function.name} has {lines} lines"
        given = parameters(function)
        assert len(given) <= MOST_PARAMETERS, f"{function.name} has {len(given)} parameters"


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: str(path.relative_to(ROOT / "src" / "tartan"))
)
def test_it_knows_neither_data_nor_encoders_nor_kernels(path):
    own = ("tartan.core", "tartan.errors", "tartan.settings")
    foreign = [m for m in imported(path) if m.startswith(OUTSIDE) and not m.startswith(own)]
    assert not foreign


def test_algorithm_1_fits_on_a_page():
    (mix,) = [f for f in functions(ROOT / "src/tartan/core/weighting/meta.py") if f.name == "mix"]
    assert len(mix.body) - 1 <= 8  # statements, the docstring not counted
