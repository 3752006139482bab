"""The wheel works beside a package `src` of the user's own, and holds the configs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT


def test_the_citation_names_the_version_and_the_licence_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["preferred-citation"]["url"] == project["urls"]["Paper"]


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, tartan; print({'torch', 'hydra', 'lightning'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "conf"):
        shutil.copytree(ROOT / name, source / name, symlinks=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_configs_alone(installed):
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {"tartan"}
    shipped = {
        path.relative_to(installed / "tartan/conf")
        for path in (installed / "tartan/conf").rglob("*.yaml")
    }
    here = {path.relative_to(ROOT / "conf") for path in (ROOT / "conf").rglob("*.yaml")}
    assert shipped == here


@pytest.mark.slow
def test_the_command_trains_beside_a_users_own_src(installed, toy_options, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "__init__.py").write_text("")
    (tmp_path / "src" / "run.py").write_text("raise SystemExit('the user's own')\n")
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /method: finetune\nmax_steps: 2\n"
    )
    choices = ["+experiment=mine", "auxiliary=none"]
    options = [option for option in toy_options if not option.startswith("max_steps")]
    done = subprocess.run(
        [sys.executable, "-m", "tartan", "run", *choices, *options],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = tmp_path.glob("runs/**/result.json")
    assert (result.parent / "classifier" / "model.safetensors").is_file()
