"""The project installs from a checkout, and says so instead of making a wheel that breaks later."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from tests.conftest import ROOT


def test_a_wheel_is_refused_with_the_way_to_install(tmp_path: Path):
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "bdist_wheel"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "pip install -e ." in done.stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("*.whl"))


def test_the_citation_names_the_version_and_the_licence_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["preferred-citation"]["url"] == project["urls"]["Paper"]
