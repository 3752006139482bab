"""A build as `make docs` makes it, of small documentation with a mistake in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.programs import PYTHONPATH

CONF = """\
extensions = ["myst_parser", "docs.builder.mathml", "docs.builder.checked"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "furo"
"""


def build(folder, text):
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(f"# Title\n\n## A heading\n\n{text}\n")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(folder), "out"]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_page_without_mistakes_is_built_and_its_formula_needs_no_script(tmp_path):
    done = build(tmp_path, r"$\alpha_i$ of [this](#a-heading)")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<mi>α</mi>" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[link](gone.md)", "gone.md"),
        ('<img src="https://example.org/a.png">', "from elsewhere"),
    ],
)
def test_a_mistake_fails_the_build_and_is_named(tmp_path, text, said):
    done = build(tmp_path, text)
    assert done.returncode != 0
    assert said in done.stderr
