"""Every notebook runs from top to bottom, and is stored with small outputs."""

from __future__ import annotations

import difflib
import json
import re

import nbformat
import pytest

from tests.conftest import ROOT
from tests.programs import called_for_text

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 250_000
"""Bytes of a notebook with its outputs: a few pictures."""


def read(path):
    return nbformat.read(path, as_version=4)


def outputs(notebook):
    return [o for cell in notebook.cells for o in cell.get("outputs", [])]


def test_the_first_one_is_the_program_of_the_readme_but_for_sizes_and_output():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(from lightning.*?)\n```", page, flags=re.DOTALL)
    shown = {cell.source for cell in read(NOTEBOOKS[0]).cells if cell.cell_type == "code"}
    smaller = [
        ("batch_size=32", "batch_size=8"), ("max_steps=300", "max_steps=4"),
        ("devices=1", "devices=1, **quiet"),
    ]  # fmt: skip
    code = program[1]
    for theirs, own in smaller:
        assert theirs in code
        code = code.replace(theirs, own)
    assert code in shown


def test_ones_own_lightning_code_becomes_meta_tartan_in_ten_lines_at_most():
    cells = read(NOTEBOOKS[-1]).cells
    before, after = (
        next(cell.source for cell in cells if tag in cell.metadata.get("tags", ()))
        for tag in ("before", "after")
    )
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    lines = [line.rstrip() for line in compared if not line.startswith("? ")]
    new, gone = (sum(line.startswith(mark) for line in lines) for mark in ("+ ", "- "))
    assert (new, gone) == (7, 2)  # as the notebook and docs/lightning.md say
    assert "MetaTartan" not in before
    assert "Classifier" not in after
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    shown = re.search(r"```diff\n(.*?)\n```", text, flags=re.DOTALL)
    assert shown[1].splitlines() == lines


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, cache_dir, tmp_path):
    """With two steps a run."""
    content = re.sub(r"(max_steps|evaluate_every)=\d+", r"\1=2", path.read_text(encoding="utf-8"))
    (tmp_path / path.name).write_text(content, encoding="utf-8")
    environment = {"TARTAN_CACHE_DIR": str(cache_dir), "HF_HUB_OFFLINE": "1"}
    done = called_for_text("IPython", path.name, cwd=tmp_path, environment=environment, threads=2)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_of_a_notebook_is_small_and_of_one_whole_run(path):
    notebook = read(path)
    assert path.stat().st_size <= LARGEST
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    for output in outputs(notebook):
        assert output.output_type != "error"
        assert set(output.get("data", {})) <= {
            "text/plain", "text/html", "text/markdown", "image/png",
        }  # fmt: skip
        assert "/tmp/" not in json.dumps(output)
