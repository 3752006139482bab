"""Every notebook runs from top to bottom, and is stored with small outputs."""

from __future__ import annotations

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
