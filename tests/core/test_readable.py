"""The core is read like a paper: short, and with nothing from outside but torch."""

from __future__ import annotations

import ast

from tests.conftest import ROOT

FILES = sorted((ROOT / "src" / "tartan" / "core").rglob("*.py"))
OURS = ("tartan.core", "torch", "annotated_types", "numpy")  # numpy draws, in seeding


def test_the_core_imports_torch_alone_and_algorithm_1_fits_on_a_page():
    assert len(FILES) > 10
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                package = node.module.partition(".")[0]
                assert node.module.startswith(OURS) or package not in ("tartan", "transformers")
            if isinstance(node, ast.FunctionDef) and (path.name, node.name) == ("meta.py", "mix"):
                assert len(node.body) - 1 <= 8  # statements, the docstring not counted
