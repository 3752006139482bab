"""CONTRIBUTING's examples are code that runs."""

from __future__ import annotations

import re

import pytest
import yaml

from src.experiment import run_experiment
from tests.conftest import ROOT
from tests.in_process import config_of

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(language: str, first_line: str) -> str:
    """The code block that begins with `first_line`."""
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)
    (code,) = [code for code in found if code.startswith(first_line)]
    return code


def test_the_new_weighting_is_one_python_file_and_one_yaml_file(tmp_path, monkeypatch):
    code = block("python", "# src/core/weighting/loss_proportional.py")
    node = yaml.safe_load(block("yaml", "# conf/weighting/loss_proportional.yaml"))
    module, _, name = node["_target_"].rpartition(".")
    assert module == "src.core.weighting.loss_proportional"
    (tmp_path / "loss_proportional_example.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    options = ["encoder.depth=10", "encoder.width=1", "max_steps=3"]
    config = config_of(["+experiment=digits_mt", *options, "trainer.enable_progress_bar=false"])
    config.weighting = {**node, "_target_": f"loss_proportional_example.{name}"}
    result = run_experiment(config, tmp_path / "run")
    weights = result["final_task_weights"]
    assert sum(weights.values()) == pytest.approx(1, abs=1e-6)
    assert weights["end_task"] != pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("path", re.findall(r"`(src/[a-z_/]+\.py)`", TEXT))
def test_every_file_it_names_is_there(path):
    assert (ROOT / path).is_file()
